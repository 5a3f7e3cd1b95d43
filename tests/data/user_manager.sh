# Starts a systemd user manager for a user that does not exist, and tests the whole life of the service.
# Runs as root in its own mount namespace: outside, it only creates control groups and removes them again.
# $1: the program; $2: the numeric user id. Prints `skip: REASON` if the test is not possible.
set -eu
program=$1 id=$2
home=/home/memoird-test runtime=/run/user/$id group=memoird-test-$id
groups=
skip() { echo "skip: $*"; exit 0; }
check() { echo "$1"; shift; "$@" || { echo "failed: $*"; as_user systemctl --user status memoird --no-pager || true; exit 1; }; }
as_user() {
  (cd "$home" && exec setpriv --reuid "$id" --regid "$id" --clear-groups env -i HOME="$home" \
    PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="$runtime" "$@")
}
service() { as_user systemctl --user "$@"; }
shown() { service show memoird --property "$1" --value; }
await() { # waits up to a minute until the output of $1 is $2
  for _ in $(seq 600); do
    if [ "$(eval "$1")" = "$2" ]; then return 0; fi
    sleep 0.1
  done
  echo "$1 says \`$(eval "$1")\`, not \`$2\`"
  return 1
}
end() {
  [ -z "${manager-}" ] || kill -KILL "$manager" 2>/dev/null || true
  for folder in $groups; do
    for _ in $(seq 50); do
      find "$folder" -name cgroup.procs -exec cat {} + 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
      find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null && break
      sleep 0.1
    done
  done
}
trap end EXIT

systemd=/lib/systemd/systemd
[ -x "$systemd" ] || systemd=/usr/lib/systemd/systemd
[ -x "$systemd" ] || skip "systemd is not installed"
for it in setpriv systemctl mount find xargs seq; do
  command -v "$it" >/dev/null || skip "$it is not installed"
done
# The manager requires this folder at its start. Homes and runtime folders are replaced by empty ones; the
# program is mounted elsewhere, because it may be in a home.
cd /
mkdir -p /run/systemd /run/user
mount -t tmpfs memoird-test /run/systemd 2>/dev/null || skip "mounting is not possible here"
touch /run/systemd/memoird
mount --bind "$program" /run/systemd/memoird
for it in /run/user /home; do mount -t tmpfs memoird-test "$it"; done
mkdir -p /run/systemd/system "$runtime" "$home/bin" "$home/vault/memory" "$home/.ssh"
touch "$home/bin/memoird"
mount --bind /run/systemd/memoird "$home/bin/memoird"
echo secret >"$home/.ssh/key"
echo '- Measured 12 ms at the gate' >"$home/vault/memory/2026-03-10.md"
chown -R "$id:$id" "$home/vault" "$home/.ssh" "$runtime"
chown "$id:$id" "$home" "$home/bin"
chmod 700 "$runtime"
for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
  [ -e "$tree/cgroup.procs" ] || continue
  mkdir "$tree/$group" 2>/dev/null || skip "control groups cannot be created here"
  groups="$groups $tree/$group"
  chown -R "$id:$id" "$tree/$group"
done
[ -n "$groups" ] || skip "control groups are not available"
(
  for folder in $groups; do echo 0 >"$folder/cgroup.procs"; done
  cd "$home" && exec setpriv --reuid "$id" --regid "$id" --clear-groups env -i HOME="$home" \
    PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="$runtime" SYSTEMD_LOG_TARGET=console \
    "$systemd" --user
) >/run/systemd/manager.log 2>&1 &
manager=$!
is_up() { case $(service is-system-running 2>/dev/null || true) in running | degraded) echo up ;; esac; }
await is_up up >/dev/null || skip "the user manager does not start: $(tail -n 1 /run/systemd/manager.log)"

memoird="$home/bin/memoird"
check "init prepares a folder" as_user "$memoird" init vault
check "the service is installed" as_user "$memoird" service install
check "the service is active" await 'shown ActiveState' active
check "it writes a weekly summary" await 'ls $home/vault/memory/weekly 2>/dev/null' 2026-W11.md
check "service status succeeds" as_user "$memoird" service status
check "a watchdog is configured" [ "$(shown WatchdogUSec)" = 1min ]

# The same unit with other commands: they try from inside what the sandbox must prevent.
unit="$home/.config/systemd/user"
sed -e 's/^Type=.*/Type=oneshot/' -e 's/^Restart=.*/Restart=no/' -e '/^WatchdogSec=/d' \
  -e "s|^ExecStart=.*|ExecStart=$memoird doctor --sandbox|" \
  -e "/^\[Service\]/a StandardOutput=append:$home/vault/doctor.txt" "$unit/memoird.service" \
  >"$unit/probe.service"
cat >"$home/bin/look" <<END
#!/bin/sh
ls -a $home
cat $home/.ssh/key
touch /usr/x $home/x
cat /proc/self/status
END
chmod 755 "$home/bin/look"
sed -e "s|^ExecStart=.*|ExecStart=$home/bin/look|" -e "s|/doctor.txt|/seen.txt|" \
  -e "/^\[Service\]/a BindReadOnlyPaths=$home/bin/look" "$unit/probe.service" >"$unit/look.service"
chown "$id:$id" "$unit/probe.service" "$unit/look.service"
service daemon-reload
check "doctor --sandbox succeeds inside the service" service start probe
cat "$home/vault/doctor.txt"
service start look || true
echo "seen from inside:"
head -n 12 "$home/vault/seen.txt"
if [ -e "$unit/memoird.service.d/plain.conf" ]; then skip "namespaces cannot be created here"; fi
check "files outside the sandbox are hidden" sh -c "! grep -q '^secret\|^\.ssh$' $home/vault/seen.txt"
check "it has no capability" grep -q '^CapBnd:.0000000000000000$' "$home/vault/seen.txt"
check "system calls are filtered" grep -q '^Seccomp:.2$' "$home/vault/seen.txt"

before=$(shown MainPID)
check "a crash is noticed" kill -KILL "$before"
check "the service restarts" await 'shown NRestarts' 1
check "it is active after the restart" await 'shown ActiveState' active
check "it is a new process" [ "$(shown MainPID)" != "$before" ]
check "reload reads the configuration again" service reload memoird

mkdir -p "$unit/memoird.service.d"
printf '[Service]\nWatchdogSec=3\nRestartSec=100ms\n' >"$unit/memoird.service.d/fast.conf"
service daemon-reload
service reset-failed memoird
service restart memoird
restarts=$(shown NRestarts)
check "the process is suspended" kill -STOP "$(shown MainPID)"
check "the watchdog kills and restarts it" await 'test "$(shown NRestarts)" -gt '"$restarts"' && echo more' more
check "it is active after the hang" await 'shown ActiveState' active
rm "$unit/memoird.service.d/fast.conf"
service daemon-reload
service reset-failed memoird

as_user mkdir -p other/memory
cp "$home/vault/memory/2026-03-10.md" "$home/other/memory/"
chown "$id:$id" "$home/other/memory/2026-03-10.md"
check "init prepares a second folder" as_user "$memoird" init other
check "service install includes it" as_user "$memoird" service install
check "it writes a weekly summary there" await 'ls $home/other/memory/weekly 2>/dev/null' 2026-W11.md

cp "$home/.config/memoird/config.yaml" /run/systemd/config.yaml
echo 'rots: [' >>"$home/.config/memoird/config.yaml"
service reset-failed memoird
service restart memoird || true
check "a bad configuration causes no restarts" await 'shown ActiveState' failed
check "the exit code is 78" [ "$(shown ExecMainStatus)" = 78 ]
cp /run/systemd/config.yaml "$home/.config/memoird/config.yaml"

printf '[Service]\nType=simple\nExecStart=\nExecStart=/bin/false\n' >"$unit/memoird.service.d/fast.conf"
printf 'RestartSec=100ms\n' >>"$unit/memoird.service.d/fast.conf"
service daemon-reload
service reset-failed memoird
service start memoird || true
check "repeated restarts stop" await 'shown ActiveState' failed
check "after at most five restarts" [ "$(shown NRestarts)" -le 5 ]

rm -r "$unit/memoird.service.d"
service daemon-reload
service reset-failed memoird
check "service uninstall removes it" as_user "$memoird" service uninstall --yes
check "the unit file is removed" [ ! -e "$unit/memoird.service" ]
echo "all held"

#!/bin/sh
# Tests the life of a .deb: install, use, service, upgrade, remove, purge.
#
#   packaging/test-deb.sh target/packages/memoird_*.deb
#
# It needs root, dpkg-deb, unshare and debootstrap with a Debian mirror (SUITE and MIRROR name others
# than bookworm and deb.debian.org): the package is installed in a small Debian system in a temporary
# folder, never on this machine. `ROOT=DIR` reuses such a system, and keeps it. The service is tested
# under a user manager where systemd and control groups allow it; a part that is not possible is reported.
set -eu

fail() {
  echo "failed: $*" >&2
  exit 1
}
ok() { echo "ok: $*"; }

[ $# = 1 ] || fail "usage: packaging/test-deb.sh DEB"
[ "$(id -u)" = 0 ] || fail "only root can prepare a system to test in"
[ -n "${MEMOIRD_TEST_DEB-}" ] || MEMOIRD_TEST_DEB=1 exec unshare --mount --propagation private sh "$0" "$1"
here=$(cd "$(dirname "$0")/.." && pwd)
deb=$(realpath "$1")
temporary=$(mktemp -d /var/tmp/memoird-test-deb.XXXXXX)
root=${ROOT-$temporary/root}
# The mounts end with this process; they must be gone before the folder is removed.
trap 'umount -R "$root/proc" "$root/dev" 2>/dev/null || true; rm -rf --one-file-system "$temporary"' EXIT

if [ ! -x "$root/usr/bin/dpkg" ]; then
  debootstrap --variant=minbase --include=systemd,procps,bash-completion \
    "${SUITE-bookworm}" "$root" "${MIRROR-http://deb.debian.org/debian}" >"$temporary/log" 2>&1 ||
    fail "debootstrap: $(tail -n 1 "$temporary/log")"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
user() {
  chroot --userspec=mara "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/home/mara LANG=C.UTF-8 \
    sh -c 'cd && exec "$@"' sh "$@"
}
inside userdel --remove mara >/dev/null 2>&1 || true
inside useradd --create-home mara

# The second version is the first one with another number.
version=$(dpkg-deb --field "$deb" Version)
dpkg-deb --raw-extract "$deb" "$temporary/next"
sed -i "s/^Version: .*/Version: $version+next/" "$temporary/next/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 --build "$temporary/next" "$root/next.deb" >/dev/null
cp "$deb" "$root/first.deb"

start=$(date +%s)
inside dpkg --install /first.deb >/dev/null || fail "dpkg --install"
user memoird demo demo >"$temporary/demo" || fail "memoird demo"
[ -s "$root/home/mara/demo/WISDOM.md" ] || fail "the demo wrote no WISDOM.md"
ok "installed, and the demo is done, after $(($(date +%s) - start)) s"
user memoird --version

pages=$(inside dpkg --listfiles memoird | grep -c '^/usr/share/man/man1/memoird.*\.1\.gz$')
[ "$pages" -gt 30 ] || fail "only $pages manual pages"
inside zgrep -q 'Run everything that is due' /usr/share/man/man1/memoird-compact.1.gz || fail "memoird-compact(1)"
ok "$pages manual pages"
# shellcheck disable=SC2016 # for the shell inside
inside bash -c '. /usr/share/bash-completion/bash_completion; _load_comp memoird 2>/dev/null ||
  __load_completion memoird; COMP_WORDS=(memoird comp); COMP_CWORD=1; COMP_TYPE=9;
  complete=$(complete -p memoird | sed "s/.* -F \([^ ]*\).*/\1/"); "$complete" memoird comp memoird;
  [[ " ${COMPREPLY[*]} " == *" compact "* ]]' || fail "bash completes no verb"
for file in zsh/vendor-completions/_memoird fish/vendor_completions.d/memoird.fish doc/memoird/copyright; do
  [ -s "$root/usr/share/$file" ] || fail "/usr/share/$file is missing"
done
ok "completions"
unit=/usr/lib/systemd/user/memoird.service
grep -qx 'ExecStart=/usr/bin/memoird run' "$root$unit" || fail "$unit does not start /usr/bin/memoird"
! grep -q '\.local/bin' "$root$unit" || fail "$unit names ~/.local/bin"
problems=$(inside env XDG_RUNTIME_DIR=/run systemd-analyze --user verify "$unit" 2>&1 | grep memoird || true)
[ -z "$problems" ] || fail "systemd-analyze verify: $problems"
[ -z "$(find "$root/etc/systemd/user" -name 'memoird*')" ] || fail "the service is enabled for everybody"
ok "the unit is valid, and nobody's service starts by itself"

unshare --mount sh "$here/tests/data/user_manager.sh" "$root/usr/bin/memoird" 64124 >"$temporary/manager" 2>&1 ||
  fail "the service under a user manager: $(cat "$temporary/manager")"
case $(tail -n 1 "$temporary/manager") in
"all held") ok "the program of the package as a service under a user manager" ;;
*) echo "not tested, the service under a user manager: $(tail -n 1 "$temporary/manager")" ;;
esac

# A folder of memories and its configuration outlive everything that is done to the package.
user mkdir -p vault/memory
echo '- Measured 12 ms at the gate' >"$root/home/mara/vault/memory/2026-03-10.md"
chown -R "$(stat -c %u:%g "$root/home/mara")" "$root/home/mara/vault"
user memoird init vault >/dev/null 2>&1 || fail "memoird init"
user memoird --root vault compact >/dev/null 2>&1 || fail "memoird compact"
[ -s "$root/home/mara/vault/memory/weekly/2026-W11.md" ] || fail "there is no weekly summary"
listing() { (cd "$root/home/mara" && find . -type f -exec sha256sum {} + | sort -k 2); }
listing >"$temporary/before"
inside dpkg --install /next.deb >/dev/null || fail "the upgrade"
# shellcheck disable=SC2016 # for dpkg-query
inside dpkg-query --show --showformat '${Version}\n' memoird | grep -qx "$version+next" || fail "the version after the upgrade"
listing | cmp -s - "$temporary/before" || fail "the upgrade changed files of a user"
user memoird --root vault compact >"$temporary/again" 2>&1 || fail "memoird compact after the upgrade"
ok "upgrade to $version+next"
listing >"$temporary/before"
inside dpkg --remove memoird >/dev/null || fail "the removal"
inside dpkg --purge memoird >/dev/null 2>&1 || fail "the purge"
left=$(find "$root/usr" "$root/etc" "$root/var/lib/systemd" -name '*memoird*')
[ -z "$left" ] || fail "left behind: $left"
listing | cmp -s - "$temporary/before" || fail "the purge changed files of a user"
ok "removed and purged; memories and settings are as before"
echo "all passed"

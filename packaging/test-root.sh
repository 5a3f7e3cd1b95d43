#!/bin/sh
# Runs the static program in a bare system: that of a folder, such as an unpacked Alpine minirootfs or what
# `debootstrap --variant=minbase` made. Needs root and util-linux.
#
#   packaging/test-root.sh ROOT PROGRAM
set -eu
[ $# = 2 ] || { sed -n 's/^#   //p' "$0"; exit 2; }
root=$(cd "$1" && pwd)
program=$2
[ -e "$root/bin/sh" ] || [ -L "$root/bin/sh" ] || { echo "$root has no /bin/sh: not a system" >&2; exit 2; }
cp "$program" "$root/usr/local/bin/memoird"
cat >"$root/root/try-memoird" <<'EOF'
set -eu
export HOME=/root/memoird-home
rm -rf "$HOME"; mkdir -p "$HOME/notes/memory"; cd "$HOME"
memoird --version
memoird demo journal >demo.txt 2>&1
[ -s journal/WISDOM.md ]
printf '# 2026-04-02\n\n- Rule: never deploy on Fridays\n- Decided: the lamp office opens at noon\n' >notes/memory/2026-04-02.md
memoird init --yes notes >init.txt 2>&1
memoird --root notes compact >compact.txt 2>&1
grep -q 'never deploy on Fridays' notes/WISDOM.md
memoird --root notes search office 2>search.txt | grep -q noon
memoird --root notes doctor >doctor.txt 2>&1
memoird man --dir man >man.txt 2>&1
[ -s man/memoird.1 ]
rm -rf "$HOME"
EOF
# In its own namespace, so that nothing stays mounted.
unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh /root/try-memoird' - "$root"
rm -f "$root/root/try-memoird" "$root/usr/local/bin/memoird"
echo "all passed"

#!/bin/sh
# Tests install.sh against a release in a temporary folder: over file://, and over HTTP on the loopback
# interface where python3 is installed. No network, no root.
#
#   packaging/test-install.sh [PACKAGES]
#
# The release contains a small script in place of the program; with PACKAGES (target/packages) it is the
# archive that packaging/build.sh made for this machine, and the installed program runs its demo.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
packages=${1:+$(cd "$1" && pwd)}
temporary=$(mktemp -d "${TMPDIR:-/tmp}/memoird-test-install.XXXXXX")
server=''
trap '[ -z "$server" ] || kill "$server"; rm -rf "$temporary"' EXIT
cd "$temporary"

fail() {
  echo "failed: $*" >&2
  cat out >&2
  exit 1
}
# The test server is on this machine.
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

# Checks that a call succeeds, or fails, and says something: `check 0 TEXT OPTION...`
check() {
  status=$1 text=$2
  shift 2
  actual=0
  sh release/install.sh "$@" >out 2>&1 || actual=$?
  [ "$actual" = "$status" ] || fail "exit code $actual instead of $status: install.sh $*"
  grep -qF -e "$text" out || fail "the output does not contain \`$text\`: install.sh $*"
  echo "ok: install.sh $*"
}
# Calls a function with another PATH. Before a function some shells would keep an assignment.
in_path() (
  PATH=$1
  export PATH
  shift
  "$@"
)
no_file() {
  [ ! -e "$1" ] || fail "$1 exists"
}
sums() {
  if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml")
case $(uname -s)-$(uname -m) in
Linux-x86_64) target=x86_64-unknown-linux-musl ;;
Linux-aarch64) target=aarch64-unknown-linux-musl ;;
Darwin-x86_64) target=x86_64-apple-darwin ;;
Darwin-arm64) target=aarch64-apple-darwin ;;
*)
  echo "skip: there is no archive for this machine"
  exit 0
  ;;
esac
# Makes an archive of a program that is a script: `archive VERSION SCRIPT`
archive() {
  tree=memoird-$1-$target
  mkdir -p "$tree/bin" "$tree/share/man/man1"
  printf '#!/bin/sh\n%s\n' "$2" >"$tree/bin/memoird"
  chmod 755 "$tree/bin/memoird"
  echo page >"$tree/share/man/man1/memoird.1"
  tar -czf "release/$tree.tar.gz" "$tree"
  rm -r "$tree"
}
mkdir release
"$here/render.sh" release
if [ -n "$packages" ]; then
  cp "$packages/memoird-$version-$target.tar.gz" release/
else
  archive "$version" "echo memoird $version"
fi
archive 9.9.9 'echo memoird 9.9.9'
archive 8.8.8 'exit 1'
(cd release && sums memoird-*.tar.gz >SHA256SUMS)
from=file://$temporary/release

check 0 "--prefix DIR" --help
check 0 "would install memoird $version ($target)" --from "$from" --prefix "$temporary/a b" --dry-run
no_file "a b"
check 0 "next: memoird demo" --from "$from/" --prefix "a b"
"a b/bin/memoird" --version | grep -qx "memoird $version" || fail "the installed program is another one"
[ -s "a b/share/man/man1/memoird.1" ] || fail "there is no manual page"
[ -z "$(find "a b" -name '*.new')" ] || fail "a temporary file is left"
HOME=$temporary/home check 0 "is not in PATH" --from "$from"
[ -x home/.local/bin/memoird ] || fail "the default is not ~/.local"
if [ -n "$packages" ]; then
  ("$temporary/a b/bin/memoird" demo "$temporary/demo") >out 2>&1 || fail "the demo of the installed program"
  [ -s demo/WISDOM.md ] || fail "the demo wrote no WISDOM.md"
  echo "ok: the installed program runs its demo"
fi

# An update replaces the program as a whole: the file of the old one stays for whoever runs it.
ln home/.local/bin/memoird old
HOME=$temporary/home check 0 "installed memoird 9.9.9" --from "$from" --version v9.9.9
home/.local/bin/memoird | grep -qx "memoird 9.9.9" || fail "the program was not replaced"
cmp -s old home/.local/bin/memoird && fail "the file of the old program was overwritten"

# Nothing is installed that was changed, is unknown, or does not run.
HOME=$temporary/home check 1 "does not run in $temporary/home/.local/bin, nothing was installed" --from "$from" --version 8.8.8
echo changed >>release/memoird-9.9.9-$target.tar.gz
check 1 "checksum of memoird-9.9.9-$target.tar.gz is wrong" --from "$from" --version 9.9.9 --prefix "$temporary/b"
check 1 "does not list memoird-7.7.7-$target.tar.gz" --from "$from" --version 7.7.7 --prefix "$temporary/b"
check 1 "may have no archive for other" --from "$from" --target other --prefix "$temporary/b"
check 1 "cannot download $from/none/SHA256SUMS" --from "$from/none" --prefix "$temporary/b"
no_file b
HOME=$temporary/home check 1 "hint:" --from "$from" --version 9.9.9
home/.local/bin/memoird | grep -qx "memoird 9.9.9" || fail "a failed call changed the program"

check 1 "unknown option: --force" --force
check 1 "--prefix needs a value" --prefix
check 1 "not a version: 1/../2" --version 1/../2
: >file
check 1 "choose another folder with --prefix" --from "$from" --prefix "$temporary/file"
case $(sed -n 's/^repository = "\(.*\)"/\1/p' "$here/../Cargo.toml") in
*.invalid/*) check 1 "names no address" --prefix "$temporary/b" ;;
esac
cp "$here/install.sh" release/install.sh
check 1 "names no version" --from "$from"
"$here/render.sh" release

# No program runs from the temporary folder where its file system is mounted noexec.
if [ "$(uname -s)" = Linux ] && mkdir noexec && mount -t tmpfs -o noexec tmpfs noexec 2>/dev/null; then
  actual=0
  TMPDIR=$temporary/noexec sh release/install.sh --from "$from" --prefix "$temporary/n" >out 2>&1 || actual=$?
  umount noexec
  [ "$actual" = 0 ] && [ -x n/bin/memoird ] || fail "a temporary folder mounted noexec"
  echo "ok: a temporary folder mounted noexec"
fi

# Half a script does nothing.
head -c 4000 release/install.sh >half.sh
sh half.sh --from "$from" --prefix "$temporary/b" >out 2>&1 || true
no_file b

# Without curl, with wget alone.
if command -v wget >/dev/null; then
  mkdir tools
  for tool in awk cat cp dirname find grep gzip mkdir mktemp mv rm sed sh sha256sum shasum sort tar uname wget; do
    if path=$(command -v "$tool"); then ln -s "$path" tools/; fi
  done
  in_path "$temporary/tools" check 0 "installed" --from "$from" --prefix "$temporary/c"
fi

if command -v python3 >/dev/null; then
  mkfifo ready
  python3 - release >ready 2>/dev/null <<'END' &
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_port, flush=True)
server.serve_forever()
END
  server=$!
  read -r port <ready
  http=http://127.0.0.1:$port
  check 0 "installed" --from "$http" --prefix "$temporary/d"
  check 1 "cannot download $http/none/SHA256SUMS" --from "$http/none" --prefix "$temporary/e"
  if [ -d tools ]; then
    in_path "$temporary/tools" check 0 "installed" --from "$http" --prefix "$temporary/f"
  fi
fi
echo "all passed"

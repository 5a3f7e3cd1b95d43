#!/bin/sh
# Builds what a release has for one target: an archive, and for Linux with musl also a .deb and a .rpm.
#
#   packaging/build.sh [TARGET]        the default is the target of this machine
#
# The results are in target/packages. Man pages and completions are printed by the program itself, so it
# must run on this machine. It needs Rust with the target (`rustup target add TARGET`) and a C compiler
# for it (for musl: the package musl-tools); for the packages cargo-deb and cargo-generate-rpm. One of
# these two that is missing is reported, and its package is left out; --all makes that an error.
#
# .deb and .rpm contain the static program, so that one package fits every release of a distribution.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "build.sh: $*" >&2
  exit 1
}

all=no target=
for argument; do
  case $argument in
  --all) all=yes ;;
  -*) fail "unknown option: $argument (usage: packaging/build.sh [--all] [TARGET])" ;;
  *) target=$argument ;;
  esac
done
[ -n "$target" ] || target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=memoird-$version-$target
assets=target/packaging
out=target/packages

case $target in
*-linux-musl)
  # The C compiler for SQLite and the other parts in C.
  compiler=CC_$(printf %s "$target" | tr - _)
  eval "[ -n \"\${$compiler-}\" ]" || export "$compiler=musl-gcc"
  ;;
esac
cargo build --profile dist --locked --target "$target"
program=target/$target/dist/memoird

rm -rf "$assets" "${out:?}/$name.tar.gz"
mkdir -p "$assets/completions" "$out"
"$program" man --dir "$assets/man"
"$program" completions bash >"$assets/completions/memoird"
"$program" completions zsh >"$assets/completions/_memoird"
"$program" completions fish >"$assets/completions/memoird.fish"
# The unit of a package: the program is in /usr/bin. A unit that `memoird service install` writes into
# the home folder, with the folders of its owner, takes precedence.
{
  # shellcheck disable=SC2016 # not code
  echo '# User unit of the package, for the memory folder ~/memory. `memoird service install` writes one for'
  echo '# your own folders to ~/.config/systemd/user, and that one takes precedence.'
  echo
  sed -e '/^# User unit/,/^$/d' -e 's/^# EDIT: where.*/# The program of the package./' -e 's/^# EDIT: the/# The/' -e 's/^# EDIT: /# /' \
    -e 's|%h/.local/bin/memoird|/usr/bin/memoird|' \
    systemd/memoird.service
} >"$assets/memoird.service"

# The tree of the archive is the one below /usr/local or ~/.local.
tree=$assets/$name
mkdir -p "$tree/bin" "$tree/share/man/man1" "$tree/share/doc/memoird" \
  "$tree/share/bash-completion/completions" "$tree/share/zsh/site-functions" \
  "$tree/share/fish/vendor_completions.d"
cp "$program" "$tree/bin/memoird"
cp "$assets/man/"*.1 "$tree/share/man/man1/"
cp "$assets/completions/memoird" "$tree/share/bash-completion/completions/"
cp "$assets/completions/_memoird" "$tree/share/zsh/site-functions/"
cp "$assets/completions/memoird.fish" "$tree/share/fish/vendor_completions.d/"
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$tree/share/doc/memoird/"
# The same files give the same archive, where tar can do that.
if tar --version | grep -q GNU; then
  set -- --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)"
else
  set --
fi
tar "$@" -C "$assets" -cf "$assets/$name.tar" "$name"
gzip -9n <"$assets/$name.tar" >"$out/$name.tar.gz"
echo "built $out/$name.tar.gz"

case $target in *-linux-musl) ;; *) exit 0 ;; esac
if cargo deb --version >/dev/null 2>&1; then
  cargo deb --quiet --no-build --no-strip --target "$target" --output "$out/"
elif [ $all = yes ]; then
  fail "cargo-deb is missing: cargo install cargo-deb --locked"
else
  echo "cargo-deb is missing, no .deb (cargo install cargo-deb --locked)"
fi
if cargo generate-rpm --version >/dev/null 2>&1; then
  cargo generate-rpm --profile dist --target "$target" --auto-req disabled --output "$out/"
elif [ $all = yes ]; then
  fail "cargo-generate-rpm is missing: cargo install cargo-generate-rpm --locked"
else
  echo "cargo-generate-rpm is missing, no .rpm (cargo install cargo-generate-rpm --locked)"
fi

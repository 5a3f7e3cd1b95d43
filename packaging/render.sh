#!/bin/sh
# Fills in the templates of this folder: version, addresses and maintainer from Cargo.toml, and the
# checksums of a release.
#
#   packaging/render.sh OUT [SHA256SUMS]
#
# Writes OUT/install.sh, and with SHA256SUMS also OUT/memoird.rb (Homebrew) and OUT/PKGBUILD (Arch).
set -eu
here=$(cd "$(dirname "$0")" && pwd)

fail() {
  echo "render.sh: $*" >&2
  exit 1
}

[ $# -ge 1 ] || fail "usage: packaging/render.sh OUT [SHA256SUMS]"
out=$1 sums=${2-}
manifest() {
  value=$(sed -n "s/^$1 = \[*\"\([^\"]*\)\".*/\1/p" "$here/../Cargo.toml")
  [ -n "$value" ] || fail "Cargo.toml has no \`$1\`"
  echo "$value"
}
# One by one: of several in one command only the last failure would count.
version=$(manifest version)
repository=$(manifest repository)
homepage=$(manifest homepage)
maintainer=$(manifest authors | sed 's/[&|\\]/\\&/g')

# Copies a template with its @WORDS@ filled in.
render() {
  script="s|@VERSION@|$version|g;s|@REPOSITORY@|$repository|g;s|@HOMEPAGE@|$homepage|g;s|@MAINTAINER@|$maintainer|g"
  # shellcheck disable=SC2013 # words, not lines
  for word in $(grep -o '@SHA256:[a-z0-9_-]*@' "$1" | sort -u); do
    target=${word#@SHA256:} target=${target%@}
    archive=memoird-$version-$target.tar.gz
    sum=$(awk -v name="$archive" '$2 == name { print $1 }' "$sums")
    [ -n "$sum" ] || fail "$sums has no $archive"
    script="$script;s|$word|$sum|g"
  done
  sed "$script" "$1" >"$2"
}

mkdir -p "$out"
render "$here/install.sh" "$out/install.sh"
chmod 755 "$out/install.sh"
[ -n "$sums" ] || exit 0
render "$here/homebrew/memoird.rb" "$out/memoird.rb"
render "$here/arch/PKGBUILD" "$out/PKGBUILD"

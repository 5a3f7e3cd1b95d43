#!/bin/sh
# Installs memoird from the archive of a release. No root, nothing outside of the prefix.
#
# This is a template: `packaging/render.sh` fills in version and address, and a release contains the
# result. The script in the repository needs --version and --from.
set -eu

version='@VERSION@'
repository='@REPOSITORY@'

usage() {
  cat <<'END'
Installs memoird: the program, its manual pages, and completions for bash, zsh and fish.

usage: install.sh [OPTION]...
  --prefix DIR       install below DIR [default: ~/.local]
  --version VERSION  install this version [default: that of the script]
  --from URL         folder with the archive and SHA256SUMS (https://, http://, file://)
                     [default: that of the release]
  --target TARGET    archive for this platform, such as x86_64-unknown-linux-gnu [default: this machine]
  --dry-run          show what would be installed, and change nothing
  --help             show this text

The archive must have the SHA-256 checksum that SHA256SUMS lists; otherwise nothing is installed.
END
}

fail() {
  echo "install.sh: error: $1" >&2
  [ -z "${2-}" ] || echo "hint: $2" >&2
  exit 1
}

# A function, so that a script that was only half downloaded does nothing.
main() {
  prefix='' from='' target='' dry_run=no
  while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=yes ;;
    --help | -h)
      usage
      exit 0
      ;;
    --prefix | --version | --from | --target)
      [ -n "${2-}" ] || fail "$1 needs a value" "install.sh --help"
      case $1 in
      --prefix) prefix=$2 ;;
      --version) version=${2#v} ;;
      --from) from=${2%/} ;;
      --target) target=$2 ;;
      esac
      shift
      ;;
    *) fail "unknown option: $1" "install.sh --help" ;;
    esac
    shift
  done

  case $version in
  @*) fail "this copy of the script names no version" "use the script of a release, or add --version and --from" ;;
  *[!0-9A-Za-z.+-]*) fail "not a version: $version" "--version takes a number such as 1.2.3" ;;
  esac
  if [ -z "$from" ]; then
    case $repository in
    @* | *.invalid/*) fail "this copy of the script names no address" "add --from URL" ;;
    esac
    from=$repository/releases/download/v$version
  fi
  case $prefix in
  '')
    [ -n "${HOME-}" ] || fail "HOME is not set" "add --prefix DIR"
    prefix=$HOME/.local
    ;;
  /*) ;;
  *) prefix=$(pwd)/$prefix ;;
  esac

  if [ -z "$target" ]; then
    system=$(uname -s) machine=$(uname -m)
    case $machine in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no archive for the processor $machine" "build from source: see docs/src/install.md in the repository" ;;
    esac
    case $system in
    # The static program works with every C library.
    Linux) target=$machine-unknown-linux-musl ;;
    Darwin) target=$machine-apple-darwin ;;
    *) fail "there is no archive for $system" "Linux and macOS are supported" ;;
    esac
  fi
  name=memoird-$version-$target

  if command -v curl >/dev/null 2>&1; then
    download() { curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"; }
  elif command -v wget >/dev/null 2>&1; then
    download() {
      case $1 in
      file://*) cp "${1#file://}" "$2" ;;
      *) wget --quiet --output-document="$2" "$1" ;;
      esac
    }
  else
    fail "neither curl nor wget is installed" "install one of them"
  fi
  if command -v sha256sum >/dev/null 2>&1; then
    checksum() { sha256sum <"$1"; }
  elif command -v shasum >/dev/null 2>&1; then
    checksum() { shasum -a 256 <"$1"; }
  else
    fail "neither sha256sum nor shasum is installed, so the archive could not be checked" "install one of them"
  fi

  temporary=$(mktemp -d "${TMPDIR:-/tmp}/memoird-install.XXXXXX") || fail "no temporary folder can be created"
  new=''
  trap 'rm -rf "$temporary"; [ -z "$new" ] || rm -f "$new"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch() {
    download "$from/$1" "$temporary/$1" || fail "cannot download $from/$1" "${2-}"
  }
  fetch SHA256SUMS "is $version a released version, and is there a network?"
  # A line is `SUM  NAME`, or `SUM *NAME`.
  expected=$(awk -v name="$name.tar.gz" '$2 == name || $2 == "*" name { print $1; exit }' "$temporary/SHA256SUMS")
  [ -n "$expected" ] || fail "$from/SHA256SUMS does not list $name.tar.gz" "version $version may have no archive for $target"
  fetch "$name.tar.gz"
  actual=$(checksum "$temporary/$name.tar.gz")
  actual=${actual%% *}
  [ "$actual" = "$expected" ] || fail "the checksum of $name.tar.gz is wrong, nothing was installed
  expected $expected
  actual   $actual" "the download may be damaged: try again; if it stays, report it and do not use the archive"
  tar -xzf "$temporary/$name.tar.gz" -C "$temporary" || fail "cannot unpack $name.tar.gz"
  tree=$temporary/$name
  [ -f "$tree/bin/memoird" ] || fail "$name.tar.gz contains no program"
  files=$(cd "$tree" && find . -type f | sed 's|^\./||' | sort)

  if [ $dry_run = yes ]; then
    echo "would install memoird $version ($target), checksum verified:"
    echo "$files" | sed "s|^|  $prefix/|"
    exit 0
  fi
  # Before anything is replaced: a program of the wrong kind must not take the place of a working one.
  # It is tried where it will be: the temporary folder may be on a file system from which no program runs.
  mkdir -p "$prefix/bin" || fail "cannot create $prefix/bin" "choose another folder with --prefix"
  new=$prefix/bin/memoird.new
  cp "$tree/bin/memoird" "$new" || fail "cannot write $new" "choose another folder with --prefix"
  "$new" --version >/dev/null 2>&1 ||
    fail "the program for $target does not run in $prefix/bin, nothing was installed" "choose another one with --target, or another folder with --prefix if programs may not run there (noexec)"
  for file in $files; do
    path=$prefix/$file
    mkdir -p "$(dirname "$path")" || fail "cannot create the folder of $path" "choose another folder with --prefix"
    # Written beside it and renamed: a running daemon keeps its old program, and no file is ever half.
    new=$path.new
    if cp "$tree/$file" "$new" && mv -f "$new" "$path"; then
      new=''
    else
      fail "cannot write $path" "choose another folder with --prefix"
    fi
  done
  echo "installed memoird $version to $prefix/bin/memoird"
  case :${PATH-}: in
  *":$prefix/bin:"*) ;;
  *) echo "hint: $prefix/bin is not in PATH; add it in the startup file of your shell" ;;
  esac
  echo "next: memoird demo, or memoird init"
}

main "$@"

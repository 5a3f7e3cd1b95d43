# Homebrew formula: the archives of a release, with man pages and completions.
#
# A template: `packaging/render.sh` fills in version, addresses and checksums, and a release contains the
# result. It belongs into a tap (a repository `homebrew-NAME` with a folder `Formula`); then
# `brew install OWNER/NAME/memoird`. `memoird service install` writes the launch agent, or the systemd unit.
class Memoird < Formula
  desc "Long-term memory from daily logs, every line traced to its source"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/memoird-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/memoird-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/memoird-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/memoird-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "bin/memoird"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/memoird"
    zsh_completion.install "share/zsh/site-functions/_memoird"
    fish_completion.install "share/fish/vendor_completions.d/memoird.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/memoird --version")
    system bin/"memoird", "demo", testpath/"demo"
    assert_path_exists testpath/"demo/WISDOM.md"
  end
end

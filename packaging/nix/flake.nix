# Nix flake: builds memoird from source; version and homepage come from Cargo.toml.
#
#   nix run 'git+file:.?dir=packaging/nix' -- demo     in a checkout
#   nix profile install 'ADDRESS?dir=packaging/nix'    ADDRESS is that of the repository, as Nix writes it
#
# There is no flake.lock: the first call writes one, or add --no-write-lock-file.
{
  description = "Long-term memory from the daily logs of agents and people";

  inputs.nixpkgs.url = "nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      manifest = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).package;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      eachSystem = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = eachSystem (
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        {
          default = pkgs.rustPlatform.buildRustPackage {
            pname = manifest.name;
            inherit (manifest) version;
            src = ../..;
            cargoLock.lockFile = ../../Cargo.lock;
            buildType = "dist";
            # The tests need more than a build has: a user manager, files of other accounts, and an hour.
            doCheck = false;
            nativeBuildInputs = [ pkgs.installShellFiles ];
            postInstall = ''
              $out/bin/memoird man --dir man
              installManPage man/*.1
              installShellCompletion --cmd memoird \
                --bash <($out/bin/memoird completions bash) \
                --zsh <($out/bin/memoird completions zsh) \
                --fish <($out/bin/memoird completions fish)
            '';
            meta = {
              inherit (manifest) description homepage;
              license = with pkgs.lib.licenses; [
                mit
                asl20
              ];
              mainProgram = manifest.name;
            };
          };
        }
      );
    };
}

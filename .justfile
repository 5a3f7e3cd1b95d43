# What CI runs.
ci:
    .ci/run

# The whole chain on the sample journal, in a folder that is thrown away afterwards.
demo:
    #!/usr/bin/env bash
    set -euo pipefail
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    cargo run --release --locked -- demo "$dir/memoird-demo"

# How long a release build takes to fold the sample journal.
bench:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    time target/release/memoird demo "$dir/memoird-demo" >"$dir/out"

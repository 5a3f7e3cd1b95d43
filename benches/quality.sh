#!/usr/bin/env bash
# Measures how much important content the extractive engine keeps, compared to simple baselines.
#
#   benches/quality.sh DATA [MEMOIRD]
#
# DATA     a folder with the collections `locomo`, `teammates`, `worklog`, `recallbench-180d` (missing
#          ones are skipped) and `tools/` (`quality.py`, `recallbench_eval.py`, `baselines.py`).
# MEMOIRD  the binary to measure (default: the release build of this repository)
#
# PYTHON    a Python interpreter with the modules of `tools/requirements.txt` (default: python3)
# BASELINES methods of `baselines.py`, separated by commas (default: lead,random0,densq); empty for none
# OUT       a folder for all results (default: a temporary folder)
#
# All collections use the same settings: weeks have 30% of the length of their logs and months 30% of
# their weeks, without other limits; recallbench is also measured with 10% for weeks. The row `memoird`
# scores the files as they are; `memoird, uncited` scores them without the citations of bullets.
set -euo pipefail

usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
[[ $# -ge 1 && -d $1/tools ]] || usage
data=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
memoird=${2:-$here/../target/release/memoird}
[[ -x $memoird ]] || { echo "quality.sh: no binary at \`$memoird\`; run \`cargo build --release\` or name one" >&2; exit 2; }
memoird=$(cd "$(dirname "$memoird")" && pwd)/$(basename "$memoird")
python=${PYTHON:-python3}
baselines=${BASELINES-lead,random0,densq}
if [[ -n ${OUT:-} ]]; then
    mkdir -p "$OUT"; out=$(cd "$OUT" && pwd)
else
    out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
fi
# The configuration and the daemon of the user must not influence the measurement.
export HOME="$out/home" XDG_CONFIG_HOME="$out/home/config" XDG_STATE_HOME="$out/home/state"
mkdir -p "$HOME"
unset MEMOIRD_ROOT
limits="--set compaction.weekly.max_chars=0 --set compaction.monthly.max_chars=0 --set compaction.whole_below_chars=0"
recall=$data/recallbench-180d

# Copies the results of a run without the citations at the end of bullets.
uncite() {
    rm -rf "$2"; mkdir -p "$2"
    for tier in weekly monthly; do
        [[ -d $1/$tier ]] || continue
        cp -r "$1/$tier" "$2/$tier"
        find "$2/$tier" -name '*.md' -exec sed -i -E 's/[ \t]*\[[0-9]{4}-[0-9]{2}-[0-9]{2}[a-z0-9-]*:[0-9][0-9,;: a-z-]*\][ \t]*$//' {} +
    done
}

score() { # method collection outs
    "$python" "$data/tools/quality.py" --cases "$data/$2" --outs "$3" --json "$out/$1.$2.json" >"$out/log"
}

score_recall() { # method ratio out
    "$python" "$data/tools/recallbench_eval.py" --logs "$recall/logs" --questions "$recall/questions.jsonl" \
        --out "$3" --json "$out/$1.recall-$2.json" >"$out/log"
}

for collection in locomo teammates worklog; do
    [[ -d $data/$collection ]] || continue
    rm -rf "$out/memoird/$collection"
    "$python" "$data/tools/quality.py" --cases "$data/$collection" --layout memory --keep "$out/memoird/$collection" \
        --run "'$memoird' --root {work} $limits compact" --json "$out/memoird.$collection.json" >"$out/log"
    for case in "$out/memoird/$collection"/*/; do
        uncite "$case/memory" "$out/uncited/$collection/$(basename "$case")"
    done
    score "memoird, uncited" "$collection" "$out/uncited/$collection"
    [[ -n $baselines ]] || continue
    "$python" "$data/tools/baselines.py" --cases "$data/$collection" --out "$out/baselines" --methods "$baselines" >"$out/log"
    for method in ${baselines//,/ }; do
        outs=$out/baselines/$method
        # The results of a collection with one case have the name of that case.
        score "$method" "$collection" "$outs"
    done
done

if [[ -d $recall ]]; then
    for ratio in 0.30 0.10; do
        root=$out/memoird/recall-$ratio
        rm -rf "$root"; mkdir -p "$root/memory"
        cp "$recall"/logs/*.md "$root/memory/"
        # shellcheck disable=SC2086
        "$memoird" --root "$root" $limits --set "compaction.weekly.ratio=$ratio" --set "compaction.weekly.max_ratio=$ratio" \
            compact >"$out/log" 2>&1
        score_recall memoird "$ratio" "$root/memory"
        [[ -n $baselines ]] || continue
        "$python" "$data/tools/baselines.py" --cases "$recall" --out "$out/baselines-$ratio" --methods "$baselines" \
            --weekly "$ratio" --monthly 0.30 >"$out/log"
        for method in ${baselines//,/ }; do
            score_recall "$method" "$ratio" "$out/baselines-$ratio/$method/recallbench-180d"
        done
    done
fi

"$python" - "$out" "memoird;memoird, uncited;${baselines//,/;}" <<'PY'
import json, os, sys

out, methods = sys.argv[1], [m for m in sys.argv[2].split(";") if m]


def load(method, what):
    path = f"{out}/{method}.{what}.json"
    return json.load(open(path)) if os.path.exists(path) else None


def table(title, columns, row):
    rows = [(m, row(m)) for m in methods]
    rows = [(m, r) for m, r in rows if r]
    if not rows:
        return
    print(f"\n{title}\n{'':18}" + "".join(f"{c:>11}" for c in columns))
    for method, values in rows:
        cells = ("-" if v is None else f"{v:.3f}" if abs(v) < 1.5 else f"{v:.1f}" for v in values)
        print(f"{method:18}" + "".join(f"{c:>11}" for c in cells))


def tiers(what, weekly, monthly=(), case=None):
    def row(method):
        found = load(method, what)
        if not found:
            return None
        week, month = found["mean"].get("weekly", {}), found["mean"].get("monthly", {})
        values = [week.get(k) for k in weekly] + [month.get(k) for k in monthly]
        if case:
            values.insert(1, found["cases"].get(case[0], {}).get("weekly", {}).get(case[1]))
        return values
    return row


week = ["ratio_prev", "ground", "verbatim"]
table("locomo", ["ans_file", "ev_file", "ev_bullet", "ratio", "ground", "verbatim", "mo ans_f", "mo ev_b", "mo ratio"],
      tiers("locomo", ["ans_file", "ev_file", "ev_bullet", *week], ["ans_file", "ev_bullet", "ratio_prev"]))
table("teammates", ["llm_R2f", "beacon", "redund", "ratio", "ground", "verbatim"],
      tiers("teammates", ["llm_R2f", "redund", *week], case=("beacon", "llm_R2f")))
table("worklog", ["hard", "jsd", "days", "redund", "ratio", "ground", "verbatim"],
      tiers("worklog", ["hard", "jsd", "days", "redund", *week]))
for ratio in ("0.30", "0.10"):
    def row(method):
        found = load(method, f"recall-{ratio}")
        if not found:
            return None
        tier = found["tiers"]
        keys = ["A.wk", "A.mo", "AB.wk", "AB.mo", "P.wk", "P.mo"]
        return [tier["all"].get(k) for k in keys] + [tier["ratio.wk"], tier["ratio.mo"]]
    table(f"recallbench, weeks of {ratio}", ["A wk", "A mo", "AB wk", "AB mo", "P wk", "P mo", "ratio wk", "ratio mo"], row)
PY

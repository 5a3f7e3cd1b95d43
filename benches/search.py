#!/usr/bin/env python3
"""Times `memoird search` as whole processes, compared to `rg` (if installed) and SQLite's FTS5 on the same text.

  benches/search.py --bin target/release/memoird --root DIR [--rounds 5] [--json]

DIR is a memory folder with one log per day; ten years are about 31 MB. Its index is removed and rebuilt.
The queries are words of some of the logs: the rarest word of a log and two of medium frequency. The
programs alternate, so that other load affects all of them equally. Each figure is the median over all
queries and rounds; the ratio to FTS5 is more meaningful than the milliseconds.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

FTS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
words = " OR ".join('"%s"' % it for it in sys.argv[2].split())
rows = db.execute("select d, n, x from t where t match ? order by bm25(t) limit 10", (words,)).fetchall()
print(rows)
"""


def timed(command):
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode > 1:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-300:]}")
    return 1000 * (time.perf_counter() - begun)


def choose_queries(logs):
    counts = collections.Counter()
    for text in logs.values():
        counts.update(set(re.findall(r"[a-z]{4,}", text.lower())))
    chosen = []
    days = sorted(logs)
    for day in days[:: max(1, len(days) // 10)][:10]:
        words = sorted(set(re.findall(r"[a-z]{4,}", logs[day].lower())), key=lambda it: (counts[it], it))
        if len(words) > 8:
            chosen.append(" ".join([words[0], words[len(words) // 2], words[len(words) // 3]]))
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--memory", default="memory", help="the folder of the logs in DIR")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    folder = args.root / args.memory
    logs = {it.stem: it.read_text(encoding="utf-8") for it in sorted(folder.glob("????-??-??.md"))}
    size = sum(len(it.encode()) for it in logs.values())
    if not logs:
        sys.exit(f"no logs in {folder}")
    queries = choose_queries(logs)
    index = args.root / ".memoird" / "search.db"
    index.unlink(missing_ok=True)
    search = [args.bin, "--root", str(args.root), "search", "--json", "--"]
    figures = {"logs": len(logs), "bytes": size, "load": round(os.getloadavg()[0], 1)}
    build = timed([*search, queries[0]])
    figures["build_s"] = round(build / 1000, 2)
    figures["build_MB_per_s"] = round(size / 1e3 / build, 1)
    figures["index_share"] = round(index.stat().st_size / size, 2)
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "fts.db")
        db = sqlite3.connect(path)
        db.execute("create virtual table t using fts5(d unindexed, n unindexed, x, tokenize='porter unicode61')")
        for day, text in logs.items():
            db.executemany("insert into t values (?, ?, ?)", ((day, n, it) for n, it in enumerate(text.split("\n"), 1) if it))
        db.commit()
        db.close()
        ways = {
            "memoird": lambda it: [*search, it],
            "fts5": lambda it: [sys.executable, "-S", "-c", FTS, path, it],
            "python_alone": lambda it: [sys.executable, "-S", "-c", "import sqlite3, sys"],
            "memoird_alone": lambda it: [args.bin, "--version"],
        }
        if shutil.which("rg"):
            ways["rg"] = lambda it: ["rg", "-i", "-n", "|".join(it.split()), str(folder)]
        times = collections.defaultdict(list)
        for _ in range(args.rounds):
            for query in queries:
                for name, command in ways.items():
                    times[name].append(timed(command(query)))
        # The cost of a search after one log has changed.
        last = folder / f"{sorted(logs)[-1]}.md"
        was = last.read_bytes()
        try:
            for at in range(args.rounds):
                last.write_bytes(was + f"\n- a line more, the {at}th of its kind\n".encode())
                times["memoird_after_a_log"].append(timed([*search, queries[0]]))
                times["memoird_same_question"].append(timed([*search, queries[0]]))
        finally:
            last.write_bytes(was)
    for name, values in times.items():
        figures[f"{name}_ms"] = round(statistics.median(values), 1)
    figures["update_ms"] = round(figures["memoird_after_a_log_ms"] - figures["memoird_same_question_ms"], 1)
    bare = figures["fts5_ms"] - figures["python_alone_ms"]
    figures["times_fts5"] = round(figures["memoird_ms"] / max(0.1, bare), 2)
    if args.json:
        print(json.dumps(figures, indent=1))
    else:
        for name, value in figures.items():
            print(f"{name:24s} {value}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares what two builds of memoird generate from the same logs.

    benches/compare.py OLD NEW LOGS [LOGS...]

OLD, NEW  two `memoird` binaries.
LOGS      folders that hold daily logs, directly, in `memory/` or in `logs/`; searched two levels deep.

Each folder is copied for each binary and compacted with a fixed clock; then both binaries run the same
commands. Prints generated files that differ, `--json` answers that differ (keys, types, numbers, and
identifiers must be equal; sentences for people may differ and are counted separately), and exit codes
that differ. The sample journal of `demo` is always included. Exit code: 0 if only sentences differ,
else 1.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Values under these keys are sentences for people.
PROSE = {"reason", "detail", "message", "notice", "hint", "hints", "why", "note", "notes", "words", "title", "restart"}
# Times and sizes of the run itself.
VOLATILE = {"pid", "elapsed_ms", "latency_ms", "path_absolute", "bytes", "run", "id", "database_bytes", "began", "ended", "at"}


def run(binary, root, home, *args, now="2030-01-01T12:00:00Z"):
    env = {"HOME": home, "PATH": os.environ["PATH"], "MEMOIRD_NOW": now, "TZ": "UTC"}
    done = subprocess.run([binary, "--root", root, *args], capture_output=True, text=True, env=env, timeout=600)
    return done.returncode, done.stdout


def tree(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and ".memoird" not in path.parts and path.name != ".decisions.jsonl"
    }


def differences(old, new, at="", prose=None):
    """Yields the paths at which two JSON values differ; sentences are counted in `prose`."""
    key = re.sub(r"\[\d+\]$", "", at).rsplit(".", 1)[-1]
    if key in VOLATILE:
        return
    if type(old) is not type(new):
        yield f"{at}: {type(old).__name__} -> {type(new).__name__}"
    elif isinstance(old, dict):
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new:
                yield f"{at}.{name}: only in the {'new' if name in new else 'old'} answer"
            else:
                yield from differences(old[name], new[name], f"{at}.{name}", prose)
    elif isinstance(old, list):
        if len(old) != len(new):
            yield f"{at}: {len(old)} -> {len(new)} elements"
        for i, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{at}[{i}]", prose)
    elif old != new:
        if key in PROSE and isinstance(old, str):
            prose.append((at, old, new))
        else:
            yield f"{at}: {old!r} -> {new!r}"


def log_folders(given):
    found = {}
    for top in map(Path, given):
        candidates = [top, *sorted(top.glob("*")), *sorted(top.glob("*/*")), *sorted(top.glob("*/*/*"))]
        for folder in candidates:
            if folder.is_dir() and any(re.match(r"\d{4}-\d\d-\d\d.*\.md$", it.name) for it in folder.glob("*.md")):
                found[str(folder)] = folder
    return found


def commands(files):
    """Returns the commands to compare, derived from the files, so that they are the same for both binaries."""
    chosen = [["status"], ["coverage"], ["doctor"], ["usage"], ["history"], ["review"], ["context"], ["compact"]]
    words = re.findall(r"[A-Za-z]{5,}", b" ".join(files.values()).decode("utf8", "replace"))
    for i in range(0, len(words), max(1, len(words) // 12)):
        chosen.append(["search", " ".join(words[i : i + 3])])
    for name, body in files.items():
        if name == "WISDOM.md" or "/weekly/" in name or "/monthly/" in name:
            lines = body.decode("utf8", "replace").splitlines()
            marked = [i + 1 for i, line in enumerate(lines) if line.startswith(("- ", "**"))]
            for line in marked[:: max(1, len(marked) // 3)][:3]:
                chosen.append(["trace", f"{name}:{line}"])
            chosen.append(["show", name])
    return chosen[:140]


def main():
    old, new, *given = sys.argv[1:] or sys.exit(__doc__)
    old, new = os.path.abspath(old), os.path.abspath(new)
    bad, sentences, files_seen, answers = 0, [], 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        folders = {}
        for name, binary in (("old", old), ("new", new)):
            home = f"{scratch}/home-{name}"
            os.mkdir(home)
            env = {"HOME": home, "PATH": os.environ["PATH"], "TZ": "UTC"}
            subprocess.run([binary, "demo", f"{scratch}/demo-{name}"], env=env, capture_output=True, check=True)
        folders["(demo)"] = None
        folders.update(log_folders(given))
        for label, source in folders.items():
            roots = {}
            for name, binary in (("old", old), ("new", new)):
                # The files contain the name of the folder, so it must be the same for both.
                root = f"{scratch}/{name}/root" if source else f"{scratch}/demo-{name}"
                if source:
                    shutil.rmtree(f"{scratch}/{name}", ignore_errors=True)
                    os.makedirs(f"{root}/memory")
                    for log in source.glob("*.md"):
                        if re.match(r"\d{4}-\d\d-\d\d", log.name):
                            shutil.copy2(log, f"{root}/memory/{log.name}")
                    code, _ = run(binary, root, f"{scratch}/home-{name}", "compact")
                    roots[name] = (root, code)
                else:
                    roots[name] = (root, 0)
            (old_root, old_code), (new_root, new_code) = roots["old"], roots["new"]
            a, b = tree(old_root), tree(new_root)
            files_seen += len(a)
            wrong = [it for it in sorted(a.keys() | b.keys()) if a.get(it) != b.get(it)]
            lines = [f"file {it}" for it in wrong]
            if old_code != new_code:
                lines.append(f"compact ends {old_code} -> {new_code}")
            for args in commands(a):
                one = run(old, old_root, f"{scratch}/home-old", "--json", *args)
                two = run(new, new_root, f"{scratch}/home-new", "--json", *args)
                answers += 1
                if one[0] != two[0]:
                    lines.append(f"{' '.join(args)}: ends {one[0]} -> {two[0]}")
                texts = [it.replace(f"{scratch}/new", f"{scratch}/old").replace(f"{scratch}/demo-new", f"{scratch}/demo-old") for it in (one[1], two[1])]
                try:
                    parsed = [json.loads(it) for it in texts]
                except ValueError:
                    if texts[0] != texts[1]:
                        lines.append(f"{' '.join(args)}: output differs")
                    continue
                lines += [f"{' '.join(args)}{it}" for it in differences(*parsed, prose=sentences)]
            bad += len(lines)
            print(f"{label}: {len(a)} files, {len(lines)} differences")
            for line in lines[:20]:
                print(f"    {line}")
    print(f"{files_seen} files, {answers} answers compared: {bad} differences, {len(sentences)} sentences changed")
    for at, before, after in sentences[:10]:
        print(f"    {at}: {before!r} -> {after!r}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

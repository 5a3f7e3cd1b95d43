#!/usr/bin/env python3
"""Counts the lines in which memoird finds secrets, to judge false alarms and to compare two versions.

  benches/masked.py FOLDER [--program target/release/memoird] [--before OLD_PROGRAM] [--show]

FOLDER is searched for Markdown files, at any depth. They are copied into one temporary memory folder, as
logs of consecutive days, and `doctor --secrets --json` lists kinds and places. With --before, the places
that only one of the two programs finds are counted by kind; --show prints them: file, line and kind, never
the text. Nothing is sent anywhere, and the copy is removed. Needs Python 3.9.
"""
import argparse, collections, datetime as dt, json, os, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def collect(folder, root):
    """Copies the files; returns their names by day, and the number of lines."""
    names, lines, day = {}, 0, dt.date(2000, 1, 1)
    os.makedirs(os.path.join(root, "memory"))
    with open(os.path.join(root, "memoird.yaml"), "w") as file:
        file.write("zone: UTC\nprivacy:\n  personal: flag\n")
    for base, dirs, files in sorted(os.walk(folder)):
        dirs.sort()
        for name in sorted(it for it in files if it.endswith(".md")):
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                lines += file.read().count(b"\n")
            shutil.copyfile(path, os.path.join(root, "memory", f"{day}.md"))
            names[str(day)] = os.path.relpath(path, folder)
            day += dt.timedelta(days=1)
    return names, lines


def found_by(program, root, home):
    env = {"HOME": home, "PATH": os.environ["PATH"]}
    command = [program, "--root", root, "doctor", "--secrets", "--json"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        sys.exit(f"masked.py: `{program}` failed: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


def places(report):
    """Returns the kind of each line with a secret; personal data is none."""
    personal = {it["kind"] for it in report["kinds"] if it["personal"]}
    logs = [it for it in report["findings"] if it["place"] == "log" and it["kind"] not in personal]
    return {(os.path.basename(it["path"])[:-3], it["at"]): it["kind"] for it in logs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--program", default=os.path.join(HERE, "..", "target", "release", "memoird"))
    parser.add_argument("--before")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        root = os.path.join(home, "root")
        names, lines = collect(args.folder, root)
        programs = {"after": args.program} | ({"before": args.before} if args.before else {})
        found = {name: places(found_by(it, root, home)) for name, it in programs.items()}
    for name in ("before", "after"):
        if name in found:
            count = len(found[name])
            per = f", one per {lines // count} lines" if count else ""
            print(f"{name}: {count} lines with secrets of {lines}{per}: {dict(collections.Counter(found[name].values()))}")
    if args.before:
        for title, one, other in (("new", "after", "before"), ("gone", "before", "after")):
            only = {it: kind for it, kind in found[one].items() if it not in found[other]}
            print(f"{title}: {len(only)}: {dict(collections.Counter(only.values()))}")
            if args.show:
                for (day, line), kind in sorted(only.items()):
                    print(f"  {names[day]}:{line}  {kind}")


main()

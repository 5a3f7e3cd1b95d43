#!/usr/bin/env python3
"""Counts the lines of ordinary notes that quarantine holds, before and after a change of the rules.

    python3 benches/held.py FOLDER BEFORE [AFTER]

FOLDER contains Markdown files of any names; BEFORE and AFTER are binaries. Each file becomes the log of
a day in a root of its own, and `review --json` lists what is held. Prints the count for 10,000 lines
that are not blank, and the lines that only one of the binaries holds. The notes should be honest ones:
whatever is held is a mistake.
"""

import datetime
import json
import pathlib
import subprocess
import sys
import tempfile


def write_root(folder: pathlib.Path, root: pathlib.Path) -> tuple[int, dict[str, str]]:
    """Writes the root; returns the number of lines and the file of each log."""
    (root / "memory").mkdir()
    (root / "memoird.yaml").write_text("zone: UTC\n")
    day = datetime.date(2000, 1, 1)
    lines, names = 0, {}
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(errors="replace")
        # Frontmatter of another program may say anything about the origin.
        text = "\n" + text if text.startswith("---") else text
        log = f"memory/{day}.md"
        (root / log).write_text(text)
        names[log] = str(path.relative_to(folder))
        lines += sum(1 for it in text.split("\n") if it.strip())
        day += datetime.timedelta(days=1)
    return lines, names


def held(binary: str, root: pathlib.Path) -> dict[tuple[str, int], str]:
    command = [binary, "--root", str(root), "review", "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    items = (it for it in report["items"] if it["what"] == "line")
    return {(it["path"], it["line"]): f"{', '.join(it['why'])}: {it['text'][:160]}" for it in items}


def main() -> None:
    folder, *binaries = sys.argv[1:]
    if not 1 <= len(binaries) <= 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        lines, names = write_root(pathlib.Path(folder), root)
        found = [held(it, root) for it in binaries]
    for binary, lines_held in zip(binaries, found):
        share = 10_000 * len(lines_held) / max(lines, 1)
        print(f"{binary}: {len(lines_held)} of {lines} lines held, {share:.2f} in 10,000")
    for sign, these, others in (("-", found[0], found[-1]), ("+", found[-1], found[0])):
        for (path, line), text in sorted(these.items()):
            if (path, line) not in others:
                print(f"{sign} {names[path]}:{line} {text}")


if __name__ == "__main__":
    main()

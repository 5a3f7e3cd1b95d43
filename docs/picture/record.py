#!/usr/bin/env python3
"""Records the terminal picture of the README from the real program.

    docs/picture/record.py --memoird target/release/memoird            # writes both pictures
    docs/picture/record.py --memoird target/release/memoird --check    # compares, writes nothing

Runs the commands of SESSION in one shell in a pseudo terminal, in a temporary folder with the sample
journal, and draws what they print:

- docs/src/demo.svg, animated by style sheets alone, because a page that shows it as an image runs no
  script in it; a reader who asks for less motion sees its last frame;
- docs/src/demo-still.svg, the last frame.

Output is the program's own, not edited. Only the time is invented: how fast a person types, and how
long one reads. The clock and the environment are fixed, so the same program gives the same bytes.
Needs Python 3.9 or later on Linux or macOS, nothing else. Programs that record a terminal (asciinema with
svg-term, termtosvg) keep the timing of one accidental run, so each recording differs, and their
pictures move even for readers who ask for less motion.
"""

import argparse
import fcntl
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
import unicodedata
from collections import namedtuple
from html import escape
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ANIMATED = REPOSITORY / "docs/src/demo.svg"
STILL = REPOSITORY / "docs/src/demo-still.svg"
JOURNAL = REPOSITORY / "tests/data/journal/mara/memory"
# The Monday after the journal ends, as in tests/it/support, so that all its weeks are closed.
NOW = "2026-04-13T09:00:00+02:00"
SETTINGS = "agent_name: mara\nzone: Europe/Berlin\nmemory_dir: memory\n"

# At this width few words of the session are split at the end of a row.
COLUMNS, ROWS = 87, 26

# A command, how long the program seems to take, and how long its output is read, in seconds.
Step = namedtuple("Step", "command runs reads")
SESSION = [
    Step("ls memory | wc -l                  # three months of daily logs", 0.1, 0.8),
    Step("memoird compact                    # no account, no network, no model", 0.5, 2.6),
    Step("sed -n 22,33p WISDOM.md            # what an agent reads first in a session", 0.1, 6.5),
    Step("memoird trace WISDOM.md:31         # where is line 31 from?", 0.1, 4.5),
    Step('memoird search -n 1 "why sqlite?"  # and what was the reason?', 0.1, 2.0),
]
READ_AT_END = 4.0

# Printed after each command, around its exit code; neither a command nor the program prints it.
MARK = "\x1e"
TIMEOUT_SECONDS = 300


def run_session(program):
    """Returns what each command of SESSION printed on the terminal."""
    with tempfile.TemporaryDirectory(prefix="memoird-picture-") as home:
        folder = Path(home, "notes")
        shutil.copytree(JOURNAL, folder / "memory")
        (folder / "memoird.yaml").write_text(SETTINGS)
        programs = Path(home, "bin")
        programs.mkdir()
        (programs / "memoird").symlink_to(program)
        environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": home,
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "TZ": "Europe/Berlin",
            "MEMOIRD_NOW": NOW,
        }
        script = "\n".join(f"{step.command}\nprintf '\\036%s\\036' $?" for step in SESSION)
        printed = run_in_terminal(["/bin/sh", "-c", script], folder, environment)
    parts = printed.decode().split(MARK)
    outputs, codes = parts[0:-1:2], parts[1::2]
    for step, output, code in zip(SESSION, outputs, codes):
        if code != "0":
            sys.exit(f"error: `{step.command}` ended with exit code {code}:\n{output}")
    if len(codes) != len(SESSION):
        sys.exit(f"error: the session ended early:\n{printed.decode(errors='replace')}")
    return outputs


def run_in_terminal(command, folder, environment):
    """Runs a command in a pseudo terminal of COLUMNS by ROWS, and returns what it printed."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            os.chdir(folder)
            # The parent may set the size too late for a program that asks at once.
            set_size(sys.stdout.fileno())
            os.execve(command[0], command, environment)
        finally:
            os._exit(127)
    printed, end = b"", time.monotonic() + TIMEOUT_SECONDS
    while True:
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            os.kill(child, signal.SIGKILL)
            sys.exit(f"error: the session took more than {TIMEOUT_SECONDS} seconds")
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux reports the end of a terminal as an error.
            break
        if not piece:
            break
        printed += piece
    os.close(terminal)
    os.waitpid(child, 0)
    return printed


def set_size(terminal):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))


# Text in one style: the column it begins in, the text, and the names of its styles.
Run = namedtuple("Run", "column text style")

STYLES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y"}
RESETS = {"0": "bdrgy", "": "bdrgy", "22": "bd", "39": "rgy"}
CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b|[\x00-\x1f]")


def rows_of(printed):
    """Returns the rows that a terminal shows after this output: lists of `Run`.

    Knows the sequences that the program uses, progress bars included, and stops at any other.
    """
    cells, row, column, style = [[]], 0, 0, frozenset()

    def put(character):
        nonlocal row, column
        if column == COLUMNS:
            row, column = row + 1, 0
        while len(cells) <= row:
            cells.append([])
        line = cells[row]
        line.extend([(" ", frozenset())] * (column + 1 - len(line)))
        line[column] = (character, style)
        column += 1

    at = 0
    while at < len(printed):
        control, character = CONTROL.match(printed, at), printed[at]
        if not control:
            if unicodedata.east_asian_width(character) in "WF" or unicodedata.combining(character):
                sys.exit(f"error: cannot draw {character!r}, which is not one column wide")
            put(character)
            at += 1
            continue
        at = control.end()
        numbers, letter = control[1], control[2]
        count = int(numbers) if (numbers or "").isdigit() else 1
        if control[0] == "\r":
            column = 0
        elif control[0] == "\n":
            row += 1
        elif letter == "m":
            for number in numbers.split(";"):
                if number in STYLES:
                    style |= {STYLES[number]}
                elif number in RESETS:
                    style -= set(RESETS[number])
                else:
                    sys.exit(f"error: no color for `{control[0]!r}`")
        elif letter == "K" and numbers in ("", "0", "2"):
            if row < len(cells):
                del cells[row][0 if numbers == "2" else column :]
        elif letter == "J" and numbers in ("", "0"):
            del cells[row + 1 :]
            if row < len(cells):
                del cells[row][column:]
        elif letter == "A":
            row = max(0, row - count)
        elif letter == "B":
            row += count
        elif letter == "C":
            column += count
        elif letter == "D":
            column = max(0, column - count)
        elif letter == "G":
            column = count - 1
        elif letter in ("h", "l") and numbers == "?25":
            pass  # shows and hides the cursor
        else:
            sys.exit(f"error: a terminal sequence that this script does not know: {control[0]!r}")
    rows = [runs_of(line) for line in cells]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def runs_of(line):
    """Joins the characters of a row that share a style, without the spaces around them."""
    runs, start = [], 0
    for at in range(1, len(line) + 1):
        if at == len(line) or line[at][1] != line[start][1]:
            text = "".join(character for character, _ in line[start:at])
            stripped = text.strip()
            if stripped:
                column = start + len(text) - len(text.lstrip())
                runs.append(Run(column, stripped, "".join(sorted(line[start][1]))))
            start = at
    return runs


# One command of the picture: its row, what it printed, and the times in seconds at which the prompt
# appears, each letter is typed, and the output appears.
Scene = namedtuple("Scene", "row step output prompt letters printed")


def scenes_of(outputs):
    """Lays out all commands below each other; returns the scenes, the number of rows, and the time."""
    # Not random: the same hand each time.
    hand = random.Random(1)
    scenes, row, now = [], 0, 0.0
    for number, (step, output) in enumerate(zip(SESSION, outputs)):
        if 2 + len(step.command) > COLUMNS:
            sys.exit(f"error: longer than a row: {step.command}")
        rows = rows_of(output)
        if len(rows) + 2 > ROWS:
            sys.exit(f"error: {len(rows)} rows do not fit the window: {step.command}")
        prompt = now
        now += 0.6
        letters = []
        for letter in step.command:
            typed = step.command[: len(letters) + 1]
            # The spaces before a remark take no time, and the remark itself is typed fast.
            if not typed.endswith("  "):
                speed = 0.016 if "#" in typed else 0.045
                now += speed * (0.6 + 0.8 * hand.random()) + (speed if letter == " " else 0)
            letters.append(now)
        now += 0.3 + step.runs
        scenes.append(Scene(row, step, rows, prompt, letters, now))
        # The prompt begins with a blank line.
        row += 1 + len(rows) + 1
        now += step.reads
    return scenes, row + 1, now + READ_AT_END


CHARACTER, LINE, FONT = 8.4, 20, 14
LEFT, TOP, BAR, BOTTOM = 18, 46, 34, 12
WIDTH = round(LEFT * 2 + COLUMNS * CHARACTER)
HEIGHT = TOP + ROWS * LINE + BOTTOM

STYLE = f"""
text{{font:{FONT}px ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:#d6deeb;white-space:pre}}
.b{{font-weight:700;fill:#fff}}.d{{fill:#93a1b5}}.r{{fill:#ff8a80}}.g{{fill:#8ddb8c}}.y{{fill:#ffd479}}
.p{{fill:#7fdbca}}.c{{fill:#fff}}.h{{visibility:hidden}}
"""


def number(value):
    """Formats a number as short as SVG allows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def draw_run(run, row, style=None):
    x, y = number(LEFT + run.column * CHARACTER), TOP + row * LINE + 14
    name = " ".join(run.style if style is None else style)
    mark = f' class="{name}"' if name else ""
    # The length makes columns meet in any font.
    length = number(len(run.text) * CHARACTER)
    text = escape(run.text, quote=False)
    return f'<text{mark} x="{x}" y="{y}" textLength="{length}" lengthAdjust="spacingAndGlyphs">{text}</text>'


def draw_command(scene):
    command, hash_sign, remark = scene.step.command.partition("#")
    parts = [draw_run(Run(0, "$", ""), scene.row, "p")]
    parts.append(draw_run(Run(2, command.rstrip(), ""), scene.row, "c"))
    if hash_sign:
        parts.append(draw_run(Run(2 + len(command), "#" + remark, ""), scene.row, "d"))
    return parts


def draw(outputs, animated):
    """Returns the picture as SVG."""
    scenes, rows, total = scenes_of(outputs)
    last_offset = max(0, rows - ROWS)
    rules, body = [], []

    def percent(seconds):
        return number(100 * seconds / total) + "%"

    def animate(name, frames):
        """Adds steps: pairs of a time and a declaration, each valid until the next."""
        steps = "".join(f"{percent(at)}{{{what}}}" for at, what in frames)
        rules.append(f".{name}{{animation:{name} {number(total)}s step-end infinite}}@keyframes {name}{{{steps}}}")

    def appear(name, at):
        animate(name, [(0, "visibility:hidden"), (at, "visibility:visible")])

    def cursor(row, column):
        x, y = number(LEFT + column * CHARACTER), TOP + row * LINE
        return f'<rect class="u" x="{x}" y="{y}" width="{CHARACTER}" height="18" rx="1" fill="#7fdbca"/>'

    scroll = [(0, 0)]
    for at, scene in enumerate(scenes):
        end = scene.row + 1 + len(scene.output)
        command, output = draw_command(scene), []
        for row, runs in enumerate(scene.output):
            output += [draw_run(run, scene.row + 1 + row) for run in runs]
        if not animated:
            # What has scrolled away is not drawn.
            top = TOP + last_offset * LINE
            body += [it for it in command + output if int(re.search(r' y="(\d+)"', it)[1]) > top]
            continue
        x, y = number(LEFT + 2 * CHARACTER), TOP + scene.row * LINE
        cover = number(len(scene.step.command) * CHARACTER + 1)
        body.append(f'<g class="p{at}">' + "\n".join(command))
        body.append(
            f'<g class="h k{at}"><rect x="{x}" y="{y}" width="{cover}" height="{LINE}" fill="#0f1722"/>'
            f"{cursor(scene.row, 2)}</g></g>"
        )
        body.append(f'<g class="o{at}">' + "\n".join(output) + "</g>")
        appear(f"p{at}", scene.prompt)
        appear(f"o{at}", scene.printed)
        typed = [
            (when, f"transform:translateX({number((count + 1) * CHARACTER)}px)")
            for count, when in enumerate(scene.letters)
        ]
        before = [(0, "visibility:hidden")] if scene.prompt else []
        frames = before + [(scene.prompt, "visibility:visible")] + typed + [(scene.printed, "")]
        animate(f"k{at}", [(when, add_visibility(what)) for when, what in frames])
        scroll += [(scene.prompt, scene.row + 1 - ROWS), (scene.printed, end + 1 - ROWS)]
    body.append(f'<g class="e">{draw_run(Run(0, "$", ""), rows - 1, "p")}{cursor(rows - 1, 2)}</g>')
    if animated:
        last = scenes[-1].printed + SESSION[-1].reads
        appear("e", last)
        scroll.append((last, last_offset))
        frames, offset = [], None
        for when, to in scroll:
            if max(0, to) != offset:
                offset = max(0, to)
                frames.append((when, f"transform:translateY({-offset * LINE}px)"))
        animate("s", frames)
        rules.append(".u{animation:u 1.1s step-end infinite}@keyframes u{50%{opacity:0}}")
    motion = "@media (prefers-reduced-motion:no-preference){\n" + "\n".join(rules) + "\n}\n" if rules else ""
    dots = "".join(
        f'<circle cx="{x}" cy="{BAR / 2 + 1}" r="5.5" fill="{color}"/>'
        for x, color in [(22, "#ff5f57"), (41, "#febc2e"), (60, "#28c840")]
    )
    title = "memoird in a terminal"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}">
<title>{title}</title>
<!-- Drawn by docs/picture/record.py from what the program prints. -->
<style>{STYLE}{motion}</style>
<clipPath id="w"><rect x="2" y="{TOP - 2}" width="{WIDTH - 4}" height="{ROWS * LINE + 4}"/></clipPath>
<rect x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" fill="#0f1722" stroke="#3b4a5e"/>
<path d="M1 {BAR}V11A10 10 0 0 1 11 1H{WIDTH - 11}A10 10 0 0 1 {WIDTH - 1} 11V{BAR}z" fill="#1d2836"/>
{dots}<text class="d" x="{WIDTH / 2}" y="{BAR / 2 + 6}" text-anchor="middle">~/notes</text>
<g clip-path="url(#w)"><g class="s" transform="translate(0 {-last_offset * LINE})">
{chr(10).join(body)}
</g></g>
</svg>
"""


def add_visibility(declaration):
    """Once typed, a command is no longer covered."""
    if declaration.startswith("transform"):
        return declaration + ";visibility:visible"
    return declaration or "visibility:hidden"


def text_of(svg):
    """Returns the commands and the output in a picture, one piece of text a line."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def main():
    parser = argparse.ArgumentParser(description="Records the terminal picture of the README.")
    parser.add_argument("--memoird", required=True, metavar="PATH", type=Path, help="the program")
    parser.add_argument("--check", action="store_true", help="compare with the pictures in the repository, write nothing")
    call = parser.parse_args()
    if not os.access(call.memoird, os.X_OK):
        sys.exit(f"error: `{call.memoird}` is not a program")
    outputs = run_session(call.memoird.resolve())
    differs = False
    for path, animated in [(ANIMATED, True), (STILL, False)]:
        new, name = draw(outputs, animated), path.relative_to(REPOSITORY)
        if not call.check:
            path.write_text(new, encoding="utf-8")
            print(f"{name}: {len(new.encode()) / 1000:.1f} kB")
            continue
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == new:
            print(f"{name}: up to date")
            continue
        differs = True
        print(f"{name}: out of date")
        was, now = text_of(old), text_of(new)
        for sign, lines, others in [("-", was, now), ("+", now, was)]:
            for line in lines:
                if line not in others:
                    print(f"  {sign} {line}")
    if differs:
        sys.exit("hint: docs/picture/record.py --memoird PATH")


if __name__ == "__main__":
    main()

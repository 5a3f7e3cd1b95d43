#!/usr/bin/env python3
"""Measures how long an agent waits for memoird: `hook claude-code session-end` and `context`, as cold processes.

  benches/hooks.py --logs FOLDER [--program target/release/memoird] [--years 10] [--repeat 60] [--json FILE]

The logs of FOLDER (files named by their day) are shifted to fill the years and summarized once without a model.
Then each command runs --repeat times, alternating with /bin/true and `memoird --version`, so that all run under
the same load. Prints the best run, the median, and the 90th percentile in ms, the median as a multiple of that
of /bin/true, and the load. The targets (medians of 15 and 30 ms) are for an idle machine.
"""
import argparse, datetime as dt, json, os, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = {"hook session-end": 15, "context": 30, "context --format claude-hook": 30}


def make(root, logs, years):
    """Fills a memory folder with logs up to yesterday; returns their size in bytes."""
    days = sorted(it for it in os.listdir(logs) if it.endswith(".md"))
    memory, size = os.path.join(root, "memory"), 0
    os.makedirs(memory)
    last = dt.date.today() - dt.timedelta(days=1)
    for n in range(years * 365):
        day = (last - dt.timedelta(days=n)).isoformat()
        name = days[-1 - n % len(days)]
        with open(os.path.join(logs, name), encoding="utf-8") as file:
            text = file.read().replace(name[:10], day)
        with open(os.path.join(memory, day + ".md"), "w", encoding="utf-8") as file:
            size += file.write(text)
    return size


def timed(argv, env, stdin, cwd):
    begun = time.perf_counter()
    done = subprocess.run(argv, env=env, input=stdin, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = (time.perf_counter() - begun) * 1000
    if done.returncode != 0:
        sys.exit(f"{argv}: {done.returncode}\n{done.stderr.decode()}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", required=True)
    parser.add_argument("--program", default=os.path.join(HERE, "../target/release/memoird"))
    parser.add_argument("--years", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=60)
    parser.add_argument("--json")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    scratch = tempfile.mkdtemp(prefix="memoird-hooks-")
    try:
        home, root = os.path.join(scratch, "home"), os.path.join(scratch, "home", "project")
        os.makedirs(root)
        size = make(root, args.logs, args.years)
        env = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        run = lambda *argv: subprocess.run([program, *argv], env=env, cwd=root, check=True, stdout=subprocess.DEVNULL)
        run("init", root)
        begun = time.time()
        run("compact")
        print(f"{args.years} years, {size / 1e6:.1f} MB of logs, compacted in {time.time() - begun:.0f} s")
        transcript = os.path.join(HERE, "../tests/data/transcripts/claude-code.jsonl")
        hook_input = json.dumps({
            "session_id": "bench", "transcript_path": os.path.abspath(transcript), "cwd": root,
            "hook_event_name": "SessionEnd", "reason": "other",
        }).encode()
        what = {
            "/bin/true": (["/bin/true"], b""),
            "memoird --version": ([program, "--version"], b""),
            "hook session-end": ([program, "hook", "claude-code", "session-end"], hook_input),
            "context": ([program, "context"], b""),
            "context --format claude-hook": ([program, "context", "--format", "claude-hook"], b""),
        }
        took = {name: [] for name in what}
        before = os.getloadavg()[0]
        for _ in range(args.repeat):
            for name, (argv, stdin) in what.items():
                took[name].append(timed(argv, env, stdin, root))
        load = (before, os.getloadavg()[0])
        base = statistics.median(took["/bin/true"])
        report = {"years": args.years, "bytes": size, "load": load, "cores": os.cpu_count(), "measures": {}}
        print(f"load {load[0]:.1f} to {load[1]:.1f} on {os.cpu_count()} cores, {args.repeat} runs each, ms")
        print(f"{'':32}{'best':>8}{'median':>8}{'p90':>8}{'x true':>8}{'target':>8}")
        for name, runs in took.items():
            best, median, p90 = min(runs), statistics.median(runs), sorted(runs)[len(runs) * 9 // 10]
            report["measures"][name] = {"best": best, "median": median, "p90": p90, "ratio": median / base}
            target = TARGETS.get(name, "")
            print(f"{name:32}{best:8.1f}{median:8.1f}{p90:8.1f}{median / base:8.1f}{target:>8}")
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


main()

#!/usr/bin/env python3
"""Measures the speed and memory of memoird, as whole processes on years of generated logs.

  benches/speed.py [--program target/release/memoird] [--years 10] [--only NAME ...] [--scale 1.0] [--json FILE]

Each measure is a process that a user would start. Where possible it is compared to a baseline from the
same run on the same files, so that ratios can be compared between machines. Figures are medians of
--repeat runs. Needs Linux and Python 3.9. Nothing is installed, no network is used, and all files are in
one temporary folder that is removed (--keep keeps it). --scale 0.1 reduces the number of folders and logs
for a quick run; the targets are for the full size.

The logs are sentences of the sample journal in random order with increasing times: suitable for
throughput, memory, and latency, but not for judging the generated text.
"""
import argparse, datetime as dt, hashlib, json, os, random, re, resource, shutil, signal, socket
import statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
JOURNAL = os.path.join(HERE, "..", "tests", "data", "journal")
NOW = dt.datetime.now(dt.timezone.utc).replace(microsecond=0)
CLOCK = os.sysconf("SC_CLK_TCK")


def sentences():
    found = []
    for base, dirs, files in sorted(os.walk(JOURNAL)):
        dirs.sort()
        for name in sorted(files):
            if name.endswith(".md"):
                with open(os.path.join(base, name), encoding="utf-8") as file:
                    found += [it.strip() for it in file if len(it.strip()) > 40]
    return found


def log_of(rnd, words, size):
    lines, minute = ["# Log", ""], 480
    while sum(map(len, lines)) < size:
        minute += rnd.randrange(1, 20)
        line = re.sub(r"^[-#*\s]+", "", rnd.choice(words))
        lines.append(f"- {minute // 60 % 24:02}:{minute % 60:02} {line}")
    return "\n".join(lines) + "\n"


def make_years(root, years, words):
    rnd, memory = random.Random(7), os.path.join(root, "memory")
    os.makedirs(memory)
    with open(os.path.join(root, "memoird.yaml"), "w") as file:
        file.write("zone: UTC\n")
    day, count, size = NOW.date() - dt.timedelta(days=round(years * 365.25)), 0, 0
    while day < NOW.date() - dt.timedelta(days=1):
        text = log_of(rnd, words, min(40_000, max(500, rnd.lognormvariate(8.9, 0.5))))
        path = os.path.join(memory, f"{day}.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        old = time.time() - 86400
        os.utime(path, (old, old))
        day, count, size = day + dt.timedelta(days=1), count + 1, size + len(text.encode())
    return count, size


def logs_in(status):
    return next(it["files"] for it in json.loads(status)["tiers"] if it["tier"] == "daily")


class Daemon:
    """A `memoird run`, observed through its messages to the service manager."""

    def __init__(self, bench, cwd, *more):
        self.path = os.path.join(bench.work, "notify")
        if os.path.exists(self.path):
            os.remove(self.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(self.path)
        environment = {**bench.environment, "NOTIFY_SOCKET": self.path, "MEMOIRD_LOG": "error"}
        self.begun = time.monotonic()
        self.process = subprocess.Popen([bench.program, *more, "run"], cwd=cwd, env=environment,
                                        stdout=subprocess.DEVNULL)
        bench.daemons.append(self.process)
        self.until("READY=1", 120)
        self.ready_s = time.monotonic() - self.begun

    def until(self, start, patience):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                said = self.socket.recv(8192).decode()
            except TimeoutError:
                break
            if any(line.startswith(start) for line in said.splitlines()):
                return said
        raise SystemExit(f"no message {start} from the daemon")

    def stat(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        with open(f"/proc/{self.process.pid}/status") as file:
            status = dict(it.split(":", 1) for it in file if ":" in it)
        switches = {}
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/status") as file:
                switches[task] = sum(int(it.split()[1]) for it in file if it.startswith("voluntary"))
        mega = lambda name: int(status[name].split()[0]) / 1024
        return {"cpu_s": (int(fields[11]) + int(fields[12])) / CLOCK, "rss_mb": mega("VmRSS"),
                "peak_mb": mega("VmHWM"), "switches": switches}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.socket.close()


class Bench:
    def __init__(self, args):
        self.args, self.program = args, os.path.abspath(args.program)
        self.work = tempfile.mkdtemp(prefix="memoird-bench-", dir=args.dir)
        self.home = os.path.join(self.work, "home")
        os.makedirs(self.home)
        self.environment = {"HOME": self.home, "PATH": os.environ["PATH"], "TZ": "UTC"}
        self.rows, self.words, self.daemons = [], sentences(), []

    def row(self, name, value, unit, aim, baseline=None):
        ratio = value / baseline if baseline else None
        shown = ratio if ratio is not None else value
        held = "yes" if shown <= aim else "NO"
        self.rows.append({"measure": name, "value": round(value, 4), "unit": unit, "ratio": ratio and round(ratio, 2),
                          "aim": aim, "held": held == "yes"})
        of = f"{ratio:8.2f} x" if ratio is not None else " " * 10
        print(f"{name:48} {value:10.3f} {unit:5} {of}  target {aim:g}  {held}", flush=True)

    def timed(self, *words, cwd, repeat=None):
        times = []
        for _ in range(repeat or self.args.repeat):
            begun = time.monotonic()
            subprocess.run(words, cwd=cwd, env=self.environment, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times.append(time.monotonic() - begun)
        return statistics.median(times)

    def years(self):
        root = os.path.join(self.work, "years")
        count, size = make_years(root, self.args.years, self.words)
        print(f"{count} logs, {size / 1e6:.1f} MB, {os.cpu_count()} processors\n", flush=True)
        memory = os.path.join(root, "memory")
        def read():
            begun = time.monotonic()
            for name in sorted(os.listdir(memory)):
                if name.endswith(".md"):
                    with open(os.path.join(memory, name), "rb") as file:
                        hashlib.sha256(file.read()).digest()
            return time.monotonic() - begun
        read()
        hashing = statistics.median(read() for _ in range(self.args.repeat))
        print(f"{'baseline: reading and hashing all logs once':48} {hashing:10.3f} s", flush=True)
        first = self.timed(self.program, "compact", cwd=root, repeat=1)
        self.row("compact from scratch, all features on", first, "s", 15, hashing)
        listing = self.timed("find", ".", "-printf", "%s %T@", cwd=root)
        print(f"{'baseline: find -printf %s %T@':48} {listing:10.3f} s", flush=True)
        self.row("a run that checks all logs and has nothing to do", self.timed(self.program, "compact", cwd=root), "s", 5, listing)
        # Files written in the last two seconds are checked again by the next run.
        time.sleep(3)
        self.timed(self.program, "compact", cwd=root, repeat=1)
        self.row("a run with nothing to do", self.timed(self.program, "compact", cwd=root), "s", 5, listing)
        return root

    def idle(self, root):
        # The open week is written first, so that the start below is a restart.
        daemon = Daemon(self, root)
        daemon.until("STATUS=watching", 120)
        time.sleep(5)
        self.row("memory after a small run", daemon.stat()["rss_mb"], "MB", 40)
        daemon.stop()
        ready = []
        for _ in range(self.args.repeat):
            daemon = Daemon(self, root)
            ready.append(daemon.ready_s)
            daemon.stop()
        self.row("start to ready, nothing changed", statistics.median(ready), "s", 0.3)
        daemon = Daemon(self, root)
        daemon.until("STATUS=watching", 120)
        # Idle threads of the first check end after a while.
        time.sleep(15)
        before = daemon.stat()
        self.row("idle memory after a restart", before["rss_mb"], "MB", 16)
        seconds = self.args.idle
        time.sleep(seconds)
        after = daemon.stat()
        woken = sum(count - before["switches"].get(task, 0) for task, count in after["switches"].items())
        self.row(f"idle processor time (10 min, from {seconds} s)", (after["cpu_s"] - before["cpu_s"]) * 600 / seconds, "s", 0.05)
        self.row("idle wake-ups", woken / seconds, "1/s", 0.1)
        self.drops(daemon, root)
        daemon.stop()
        self.compact_everything(root)

    def compact_everything(self, root):
        """Measures the memory of a daemon that compacts everything from scratch."""
        copy = os.path.join(self.work, "from-scratch")
        shutil.copytree(os.path.join(root, "memory"), os.path.join(copy, "memory"),
                        ignore=lambda _, names: [it for it in names if not re.fullmatch(r"\d{4}-\d\d-\d\d\.md", it)])
        shutil.copy(os.path.join(root, "memoird.yaml"), copy)
        daemon = Daemon(self, copy)
        weeks, end = os.path.join(copy, "WISDOM.md"), time.monotonic() + 600
        while time.monotonic() < end and not os.path.exists(weeks):
            time.sleep(0.5)
        state = os.path.join(copy, ".memoird", "daemon.json")
        while time.monotonic() < end and json.load(open(state))["busy"]:
            time.sleep(0.5)
        time.sleep(15)
        self.row("memory after the daemon summarized everything", daemon.stat()["rss_mb"], "MB", 40)
        daemon.stop()
        shutil.rmtree(copy)

    def drops(self, daemon, root):
        """From dropping a log until `status --json` reports it."""
        took = []
        for number in range(max(3, round(100 * self.args.scale))):
            name = f"{NOW.date() - dt.timedelta(days=1 + number % 60)}-drop{number}.md"
            begun = time.monotonic()
            with open(os.path.join(root, "memory", name), "w") as file:
                file.write(f"- Measured {number} ms at the gate\n")
            def count():
                said = subprocess.run([self.program, "status", "--json"], cwd=root, env=self.environment, capture_output=True)
                return logs_in(said.stdout)
            known = getattr(self, "known", None)
            while True:
                now = count()
                if known is None or now > known:
                    self.known = now
                    break
            if known is not None:
                took.append(time.monotonic() - begun)
        self.row("a log dropped, seen in status: median", statistics.median(took), "s", 0.1)
        self.row("a log dropped, seen in status: worst", max(took), "s", 1)

    def many_logs(self):
        root, source = os.path.join(self.work, "many"), os.path.join(self.work, "source")
        count = round(100_000 * self.args.scale)
        os.makedirs(os.path.join(root, "memory"))
        os.makedirs(source)
        with open(os.path.join(root, "memoird.yaml"), "w") as file:
            file.write("zone: UTC\n")
        for number in range(count):
            day = NOW.date() - dt.timedelta(days=1 + number % 3000)
            with open(os.path.join(source, f"{day}-part{number // 3000:03}.md"), "w") as file:
                file.write(f"- Measured {number} ms at gate {number % 97}\n")
        daemon = Daemon(self, root, "--set", "schedule.on_change=false", "--set", "compaction.open_week=false")
        daemon.until("STATUS=watching", 120)
        state = os.path.join(root, ".memoird", "daemon.json")
        begun = time.monotonic()
        subprocess.run(["cp", "-r", source + "/.", os.path.join(root, "memory")], check=True)
        copied = time.monotonic() - begun
        daemon.until("STATUS=watching", 600)
        # Logs that arrive during a check are found by the next one.
        end = time.monotonic() + 600
        while time.monotonic() < end:
            said = json.load(open(state))
            seen = subprocess.run([self.program, "status", "--json"], cwd=root, env=self.environment, capture_output=True)
            files = logs_in(seen.stdout)
            if files == count and not said["busy"] and said["passes"] > 1:
                break
            time.sleep(0.2)
        took = time.monotonic() - begun
        self.row(f"{count} logs dropped at once, all seen (cp: {copied:.1f} s)", took, "s", 60)
        self.row(f"{count} logs dropped at once, peak memory", daemon.stat()["peak_mb"], "MB", 128)
        daemon.stop()
        shutil.rmtree(root)
        shutil.rmtree(source)

    def roots(self):
        count = max(2, round(1000 * self.args.scale))
        lines = ["roots:"]
        for number in range(count):
            root = os.path.join(self.home, "agents", f"a{number:04}")
            os.makedirs(os.path.join(root, "memory"))
            with open(os.path.join(root, "memory", f"{NOW.date() - dt.timedelta(days=20)}.md"), "w") as file:
                file.write(f"- Measured {number} ms at the gate\n")
            lines.append(f"  - {{path: {root}, zone: UTC}}")
        folder = os.path.join(self.home, ".config", "memoird")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.yaml"), "w") as file:
            file.write("\n".join(lines) + "\n")
        daemon = Daemon(self, self.home)
        daemon.until("STATUS=watching", 600)
        daemon.stop()
        daemon = Daemon(self, self.home)
        self.row(f"{count} folders, start to ready", daemon.ready_s, "s", 3)
        daemon.until("STATUS=watching", 600)
        time.sleep(15)
        self.row(f"{count} folders, idle memory", daemon.stat()["rss_mb"], "MB", 64)
        daemon.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(HERE, "..", "target", "release", "memoird"))
    parser.add_argument("--years", type=float, default=10)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--idle", type=int, default=600, help="seconds to watch an idle daemon")
    parser.add_argument("--only", nargs="*", choices=["years", "many", "roots"], default=["years", "many", "roots"])
    parser.add_argument("--dir", help="parent of the temporary folder; on a disk, not in memory")
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    bench = Bench(args)
    try:
        if "years" in args.only:
            bench.idle(bench.years())
        if "many" in args.only:
            bench.many_logs()
        if "roots" in args.only:
            bench.roots()
    finally:
        for process in bench.daemons:
            if process.poll() is None:
                process.kill()
        if args.json:
            with open(args.json, "w") as file:
                json.dump(bench.rows, file, indent=1)
        if not args.keep:
            shutil.rmtree(bench.work, ignore_errors=True)
    sys.exit(0 if all(it["held"] for it in bench.rows) else 1)


if __name__ == "__main__":
    main()

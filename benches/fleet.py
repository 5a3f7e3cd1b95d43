#!/usr/bin/env python3
"""Measures bundles and workers: times, requests to the store, and claims.

Starts PostgreSQL (Debian's `postgresql`, as the user `postgres`, so this needs root) and moto (PyPI, `moto[s3,server]`) on
loopback, with everything in a temporary folder. The program needs the feature `fleet`.

    cargo build --profile dist --locked --features fleet
    benches/fleet.py --program target/dist/memoird
"""

import argparse
import datetime
import glob
import http.client
import os
import pwd
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

NOW = "2026-04-13T09:00:00+02:00"
TODAY = datetime.date(2026, 4, 13)
NAMES = ["crane", "quay", "lamp office", "tide table", "pump", "export", "importer", "ledger", "gateway", "boiler"]
LINES = [
    "Decided: the {} stays blue until {} rows are in",
    "Rule: never rename the {} without ticket {}",
    "Backfill of the {} complete, {} rows",
    "The {} moved to port {}, as Ines asked",
    "Open: who paints the {} of plant {}?",
    "Learned that the {} needs {} restarts after an update",
    "Met with Omar about the {}; he wants {} reports",
]
LOG_CHARS = 1_150


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def await_port(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
    sys.exit("a server does not start")


class Postgres:
    def __init__(self, home):
        self.programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        user, data = pwd.getpwnam("postgres"), os.path.join(home, "postgres")
        os.mkdir(data)
        os.chown(data, user.pw_uid, user.pw_gid)
        password = os.path.join(home, "password")
        with open(password, "w") as file:
            file.write("secret\n")
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        start = [f"{self.programs}/initdb", "-D", data, "-U", "admin", "-A", "scram-sha-256", "-E", "UTF8"]
        subprocess.run([*start, "--locale=C", "--no-sync", "--pwfile", password], check=True, **as_user, **quiet)
        self.port = free_port()
        command = [f"{self.programs}/postgres", "-D", data, "-p", str(self.port), "-k", "", "-c", "fsync=off"]
        self.process = subprocess.Popen([*command, "-c", "listen_addresses=127.0.0.1"], **as_user, **quiet)
        await_port(self.port)
        while self.client("psql", "admin", "postgres", "-c", "SELECT 1").returncode:
            time.sleep(0.1)
        self.sql("postgres", "CREATE ROLE worker LOGIN PASSWORD 'secret'")

    def client(self, program, user, database, *args):
        command = [f"{self.programs}/{program}", "-h", "127.0.0.1", "-p", str(self.port), "-U", user, *args, database]
        return subprocess.run(command, env={"PGPASSWORD": "secret"}, capture_output=True, text=True)

    def sql(self, database, statement):
        done = self.client("psql", "admin", database, "-XqtA", "-v", "ON_ERROR_STOP=1", "-c", statement)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout.strip()

    def create(self, name):
        self.sql("postgres", f"CREATE DATABASE {name} OWNER worker")
        return f"postgres://worker:secret@127.0.0.1:{self.port}/{name}"

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Moto:
    """A store, whose log is its count of requests. With threads it would lose races, and be refused."""

    def __init__(self, home):
        self.port, self.log = free_port(), os.path.join(home, "moto.log")
        program = (
            "from werkzeug.serving import run_simple\n"
            "from moto.server import DomainDispatcherApplication, create_backend_app\n"
            f"run_simple('127.0.0.1', {self.port}, DomainDispatcherApplication(create_backend_app))"
        )
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([sys.executable, "-c", program], stdout=log, stderr=log)
        await_port(self.port)
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        key = "Credential=testing/20260413/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
        connection.request("PUT", "/team", headers={"Authorization": f"AWS4-HMAC-SHA256 {key}"})
        assert connection.getresponse().status == 200
        self.variables = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
        }

    def count(self):
        time.sleep(0.2)  # A line is written after its answer.
        with open(self.log) as log:
            return sum("HTTP/1" in line for line in log)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Run:
    """A finished process: milliseconds of wall time and CPU, and megabytes."""

    def __init__(self, command, cwd, env):
        os.makedirs(cwd, exist_ok=True)
        os.makedirs(env["HOME"], exist_ok=True)
        started = time.perf_counter()
        with subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{command}: {output.decode()}")
        self.wall, self.mb = 1e3 * (time.perf_counter() - started), usage.ru_maxrss // 1024
        self.cpu = 1e3 * (usage.ru_utime + usage.ru_stime)


class Bench:
    def __init__(self, program, home):
        self.program, self.home = os.path.abspath(program), home
        self.postgres, self.store = Postgres(home), Moto(home)
        self.claims = self.postgres.create("fleet")
        self.worker("main", "--init-claims")

    def path(self, *parts):
        return os.path.join(self.home, *parts)

    def env(self, machine):
        clock = {"PATH": "/nonexistent", "TZ": "Europe/Berlin", "MEMOIRD_NOW": NOW}
        return {**clock, **self.store.variables, "HOME": self.path("homes", machine), "MEMOIRD_CLAIMS": self.claims}

    def run(self, root, *args, now=NOW):
        return Run([self.program, *args], root, {**self.env("agent"), "MEMOIRD_NOW": now})

    def worker_command(self, machine, *args):
        return [self.program, "worker", "--store", "s3://team", "--cache", self.path("copies", machine), *args]

    def worker(self, machine, *args):
        return Run(self.worker_command(machine, *args), self.home, self.env(machine))

    def root(self, name, days, seed):
        """Writes a root with this many days of logs."""
        dice, path = random.Random(seed), self.path("roots", name, "lexicon")
        os.makedirs(f"{path}/memory")
        with open(f"{path}/memoird.yaml", "w") as file:
            file.write("agent_name: lexicon\nzone: Europe/Berlin\nmemory_dir: memory\n")
        for day in range(1, days + 1):
            self.log(path, TODAY - datetime.timedelta(day), dice)
        return path

    def log(self, path, date, dice):
        text = f"# {date}\n\n"
        while len(text) < LOG_CHARS:
            text += f"- {dice.choice(LINES).format(dice.choice(NAMES), dice.randint(2, 9999))}\n"
        with open(f"{path}/memory/{date}.md", "w") as file:
            file.write(text)

    def requests(self, action):
        before = self.store.count()
        result = action()
        return self.store.count() - before, result


def compared(name, ours, base):
    """Prints two lists of times: medians, and the least, which says more on a machine that others use."""
    medians, least = [statistics.median(it) for it in (ours, base)], [min(ours), min(base)]
    text = [f"{a:.1f} ms against {b:.1f} ms ({a / b:.2f}x)" for a, b in (medians, least)]
    print(f"{name}: {text[0]}, least {text[1]}")


def runs(bench, repeat):
    local, worker = [], []
    for number in range(repeat):
        root = bench.root(f"r{number}", 90, number)
        bench.run(root, "bundle", "push", f"s3://team/acme/r{number}")
        local.append(bench.run(root, "compact"))
        worker.append(bench.worker(f"w{number}", "--once", f"acme/r{number}"))
    compared("90 days, a worker with claim, pull and push against compact", [it.wall for it in worker], [it.wall for it in local])
    compared("  CPU", [it.cpu for it in worker], [it.cpu for it in local])
    print(f"  memory of a worker: {max(it.mb for it in worker)} MB")


def requests(bench):
    copy = bench.path("agent", "lexicon")
    pull = lambda: bench.run(copy, "bundle", "pull", "s3://team/acme/r0", "--root", ".")
    print("requests: first pull at 90 days", bench.requests(pull)[0])
    print("requests: pull of an unchanged root", bench.requests(pull)[0])
    for machine in ["w0", "w0", "fresh"]:
        with open(f"{copy}/memory/2026-04-12.md", "a") as file:
            file.write(f"- Decided: {machine} goes to the north gate at {time.time()}\n")
        bench.run(copy, "bundle", "push")
        count, run = bench.requests(lambda: bench.worker(machine, "--until-idle"))
        own, _ = bench.requests(lambda: bench.run(copy, "bundle", "pull"))
        print(f"requests: one new line, worker {machine} {count} ({run.wall:.0f} ms, {run.cpu:.0f} ms of CPU), agent's pull {own}")
    print("requests: nothing due", bench.requests(lambda: bench.worker("w0", "--until-idle"))[0])
    turn = bench.worker("w0", "--once", "acme/r0")
    print(f"a turn that finds nothing to do: {turn.wall:.0f} ms, {turn.cpu:.0f} ms of CPU")


def daily(bench):
    """A root that is pushed after each of its 90 days."""
    root, dice = bench.root("daily", 0, 0), random.Random(0)
    for day in range(90, 0, -1):
        date = TODAY - datetime.timedelta(day)
        bench.log(root, date, dice)
        bench.run(root, "bundle", "push", "s3://team/acme/daily", now=f"{date}T20:00:00+02:00")
    pull = lambda: bench.run(bench.path("daily", "lexicon"), "bundle", "pull", "s3://team/acme/daily", "--root", ".")
    print("requests: first pull after 90 pushes", bench.requests(pull)[0])
    print("requests: a worker without a copy", bench.requests(lambda: bench.worker("new", "--once", "acme/daily"))[0])


def stored(bench, name):
    """Prints what the store holds of a root."""
    sizes = {"objects": [], "manifest.json": []}
    connection = http.client.HTTPConnection("127.0.0.1", bench.store.port)
    key = "Credential=testing/20260413/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
    connection.request("GET", f"/team?list-type=2&prefix=acme/{name}/", headers={"Authorization": f"AWS4-HMAC-SHA256 {key}"})
    for entry in connection.getresponse().read().decode().split("<Contents>")[1:]:
        path, size = (entry.split(f"<{it}>")[1].split("<")[0] for it in ("Key", "Size"))
        sizes[path.removeprefix(f"acme/{name}/").split("/")[0]].append(int(size))
    print(f"stored of {name}:", ", ".join(f"{len(it)} {key} of {sum(it) // 1000} KB" for key, it in sizes.items()))


def unchanged(bench, repeat):
    root = bench.path("roots", "r0", "lexicon")
    while not os.path.exists(f"{root}/.memoird/standstill"):
        bench.run(root, "compact")
        time.sleep(0.5)
    url = f"file://{bench.path('disk', 'lexicon')}"
    bench.run(root, "bundle", "push", url)
    place, first = [], []
    for number in range(2 * repeat):
        copy = bench.path("pulled", str(number), "lexicon")
        bench.run(copy, "bundle", "pull", url, "--root", ".")
        time.sleep(2.2)  # Files must be older than the file system's clock can hide a change.
        place.append(bench.run(root, "compact").wall)
        first.append(bench.run(copy, "compact").wall)
    compared("nothing to do, after a pull against in place", first, place)


def several(bench, roots):
    seconds = []
    for machines in [["alone"], ["one", "two", "three"]]:
        for number in range(roots):
            root = bench.root(f"{machines[0]}{number}", 21, number)
            bench.run(root, "bundle", "push", f"s3://team/t{number % 3}/{machines[0]}{number}")
        started = time.perf_counter()
        workers = []
        for machine in machines:
            env = bench.env(machine)
            os.makedirs(env["HOME"], exist_ok=True)
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            workers.append(subprocess.Popen(bench.worker_command(machine, "--until-idle"), env=env, **quiet))
        assert all(it.wait() == 0 for it in workers)
        seconds.append(time.perf_counter() - started)
    one, three = seconds
    print(f"{roots} roots of 21 days: one worker {one:.1f} s, three {three:.1f} s ({one / three:.2f}x), {os.cpu_count()} cores")


def claims(bench):
    script = bench.path("claim.sql")
    with open(script, "w") as file:
        file.write("SELECT picked FROM memoird.next_turn() \\gset\n")
        file.write("SELECT id FROM memoird.claim_root(':picked', NULL, 'w', 60000)\n")
    for name, rows in [("small", 10_000), ("large", 1_000_000)]:
        url = bench.postgres.create(name)
        bench.worker("main", "--init-claims", "--claims", url)
        bench.postgres.sql(
            name,
            "INSERT INTO memoird.root (tenant, id, due_at) SELECT 't' || n % 100, 'r' || n, now() - random() * "
            f"interval '1 day' FROM generate_series(1, {rows}) n; "
            "INSERT INTO memoird.tenant SELECT 't' || n, now() - interval '1 day' FROM generate_series(0, 99) n",
        )
        bench.postgres.sql(name, "VACUUM ANALYZE")
    for name in ["small", "large"] * 3:
        done = bench.postgres.client("pgbench", "worker", name, "-n", "-f", script, "-t", "2000")
        print(name, next(it for it in done.stdout.splitlines() if "latency average" in it))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="memoird, built with the feature fleet")
    parser.add_argument("--repeat", type=int, default=5, help="how often times are measured")
    parser.add_argument("--roots", type=int, default=48, help="for one worker against three")
    options = parser.parse_args()
    home = tempfile.mkdtemp()
    os.chmod(home, 0o755)
    bench = Bench(options.program, home)
    try:
        runs(bench, options.repeat)
        requests(bench)
        stored(bench, "r0")
        daily(bench)
        unchanged(bench, options.repeat)
        several(bench, options.roots)
        claims(bench)
    finally:
        bench.postgres.stop()
        bench.store.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

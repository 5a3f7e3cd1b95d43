#!/usr/bin/env python3
"""Measures the answer times of a running `memoird mcp`, tool by tool, on an existing memory folder.

  benches/mcp.py --root DIR [--program target/release/memoird] [--calls 200] [--idle 20]

Each time is from writing a request to reading its answer, over pipes, one request at a time. The queries are
pairs of words from the logs, chosen by a fixed step; no query is repeated immediately. Prints the median, p99,
and maximum, the memory of the process, and its processor time while idle. Nothing in the folder is changed.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import time


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last = 0
        parameters = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", parameters)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last += 1
        self.say({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.last:
                return answer["result"]

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return {it.split()[0]: int(it.split()[1]) for it in status if it.startswith(("VmRSS", "VmHWM"))}

    def ticks(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            return sum(int(it) for it in stat.read().rsplit(")", 1)[1].split()[11:13])


def words(root):
    """Returns the words that occur on some days but not on most."""
    logs = sorted(pathlib.Path(root, "memory").glob("20*.md"))[::40]
    count = collections.Counter()
    for log in logs:
        count.update(set(re.findall(r"[a-z]{5,}", log.read_text(encoding="utf-8", errors="replace").lower())))
    known = sorted(word for word, days in count.items() if 1 < days < len(logs) / 2)
    return known or ["importer", "shipped"], logs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--program", default="target/release/memoird")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--idle", type=int, default=20)
    args = parser.parse_args()
    known, logs = words(args.root)
    server = Server([args.program, "--root", args.root, "mcp"])

    def query(at):
        return {"query": f"{known[at * 37 % len(known)]} {known[at * 101 % len(known)]}"}

    day = logs[len(logs) // 2].stem
    first = time.perf_counter()
    server.ask("tools/call", {"name": "memory_search", "arguments": query(0)})
    print(f"first memory_search {1e3 * (time.perf_counter() - first):9.2f} ms")
    plan = [
        ("memory_search", query, args.calls),
        ("memory_read", lambda _: {"file": day}, args.calls),
        ("memory_context", lambda _: {}, args.calls),
        ("memory_list", lambda _: {}, args.calls // 10),
        ("memory_session_list", lambda _: {}, args.calls // 10),
        ("memory_status", lambda _: {}, args.calls // 20),
    ]
    for name, arguments, calls in plan:
        times = []
        for at in range(max(calls, 3)):
            request = {"name": name, "arguments": arguments(at + 1)}
            begun = time.perf_counter()
            result = server.ask("tools/call", request)
            times.append(1e3 * (time.perf_counter() - begun))
            assert not result["isError"], result
        times.sort()
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        print(f"{name:20} n={len(times):<5} median {statistics.median(times):9.2f} ms  p99 {p99:9.2f} ms  max {times[-1]:9.2f} ms")
    memory = server.memory()
    before = server.ticks()
    time.sleep(args.idle)
    spent = (server.ticks() - before) / os.sysconf("SC_CLK_TCK") / args.idle
    print(f"memory {memory['VmRSS:'] / 1024:.0f} MiB, peak {memory['VmHWM:'] / 1024:.0f} MiB; idle {100 * spent:.2f}% of a processor")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    server.process.stdin.close()
    server.process.wait()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures what memoird's hooks cost a whole session of the real Claude Code: `claude -p` against a model on this machine.

  benches/client_hooks.py --claude PATH [--program target/release/memoird] [--repeat 20]

PATH is the program of the npm package @anthropic-ai/claude-code. The sample journal is compacted in two homes; one has
memoird's hooks, the other has /bin/true in their place, and a third has the MCP server besides the hooks. The sessions
alternate, so that all run under the same load, and each waits for what the session before left running. Prints the
median of each in ms and as a multiple of that with /bin/true.
"""
import argparse, glob, http.server, json, os, re, shutil, statistics, subprocess, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each request of the Messages API with one sentence."""

    def log_message(self, *args):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "We decided to use ZH."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def make(home, program, variant):
    """Creates a home with a memory folder and settings."""
    root = os.path.join(home, "tide")
    shutil.copytree(os.path.join(HERE, "../tests/data/journal/mara"), root)
    env = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    for args in (["init", ".", "--claude-code", "--yes"], ["compact"]):
        subprocess.run([program, *args], env=env, cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    settings = os.path.join(home, ".claude/settings.json")
    if variant == "true":
        with open(settings, encoding="utf-8") as file:
            text = file.read()
        with open(settings, "w", encoding="utf-8") as file:
            file.write(re.sub(re.escape(program) + r'( hook)', r"/bin/true\1", text))
    if variant != "hooks and server":
        os.remove(os.path.join(home, ".claude.json"))
    return root


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claude", required=True)
    parser.add_argument("--program", default=os.path.join(HERE, "../target/release/memoird"))
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    program, claude = os.path.realpath(args.program), os.path.realpath(args.claude)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scratch = tempfile.mkdtemp(prefix="memoird-client-")
    try:
        variants = ["true", "hooks", "hooks and server"]
        homes = {it: os.path.join(scratch, it.replace(" ", "-")) for it in variants}
        roots = {it: make(homes[it], program, it) for it in variants}
        took = {it: [] for it in variants}
        for n in range(args.repeat + 1):
            for it in variants:
                env = {"HOME": homes[it], "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "none",
                       "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
                       "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
                begun = time.perf_counter()
                subprocess.run([claude, "-p", "Which datum?"], env=env, cwd=roots[it], check=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                # The first round fills caches.
                if n > 0:
                    took[it].append((time.perf_counter() - begun) * 1000)
                spool = os.path.join(homes[it], ".local/state/memoird/spool")
                until = time.time() + 10
                while glob.glob(os.path.join(spool, "*.json")) and time.time() < until:
                    time.sleep(0.02)
        base = statistics.median(took["true"])
        print(f"{args.repeat} sessions each, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for it in variants:
            median = statistics.median(took[it])
            print(f"{it:20}{median:8.0f} ms  x {median / base:.2f}")
    finally:
        server.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


main()

"""Drives `memoird mcp` with the official Python client: every tool, resource, template, and prompt.

Reads one JSON object from standard input:

    {"command": "memoird", "args": ["--root", DIR, "mcp", "--allow-write"], "env": {...}, "cwd": DIR,
     "change": FILE}

Uses each protocol that the client supports: with the handshake of 2025 and, from version 2 of the
package on, without one. The client itself checks each structured answer against the tool's schema.
`change` is a file of the folder to which lines are added to cause notifications.

Prints a table. Exit codes: 0 all calls succeeded, 1 some failed (each error is printed), 77 the package
is not installed:

    pip install mcp
"""

import asyncio
import contextlib
import json
import sys
import traceback

try:
    import mcp
    from mcp import StdioServerParameters
except ImportError as error:
    print(f"skipped: {error}; pip install mcp", file=sys.stderr)
    sys.exit(77)

RECORD = "---\nid: CMEM-20260402-101500\nended: 2026-04-02T10:15:00+02:00\n---\n\n# Pump\n\nAbout the pump.\n"
CALLS = [
    ("memory_search", {"query": "importer", "limit": 3, "context": 1}),
    ("memory_read", {"file": "2026-W10"}),
    ("memory_context", {}),
    ("memory_log", {"text": "Asked by the official client"}),
    ("memory_correct", {"target": "2026-W10:16", "text": "Importer v2 shipped, 3.1 s per GB"}),
    ("memory_trace", {"target": "memory/monthly/2026-03.md"}),
    ("memory_trace", {"target": "2026-03-03:4", "up": True}),
    ("memory_coverage", {"period": "2026-W10"}),
    ("memory_list", {}),
    ("memory_get", {"name": "tests"}),
    ("memory_session_import", {"text": RECORD}),
    ("memory_session_list", {}),
    ("memory_session_export", {"id": "CMEM-20260402-101500"}),
    ("core_memory", {"operation": "list"}),
    ("core_memory", {"operation": "export", "id": "CMEM-20260402-101500"}),
    ("core_memory", {"operation": "import", "text": RECORD}),
    ("memory_status", {}),
]
BY_TEMPLATE = [
    "memoird://day/2026-03-03",
    "memoird://week/2026-W10",
    "memoird://month/2026-03",
    "memoird://memory/tests",
    "memoird://session/CMEM-20260402-101500",
]
TIMEOUT = 120
rows, failures = [], 0


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextlib.asynccontextmanager
async def connected(parameters, mode):
    """Yields the client, the protocol version, and a queue of notifications."""
    notifications = asyncio.Queue()

    async def handler(message):
        root = getattr(message, "root", message)
        if hasattr(root, "method"):
            notifications.put_nowait(plain(root))

    if hasattr(mcp, "Client"):
        async with mcp.Client(parameters, mode=mode, message_handler=handler) as client:
            yield client, str(client.protocol_version), notifications
    else:
        from mcp.client.stdio import stdio_client

        async with stdio_client(parameters) as (read, write):
            async with mcp.ClientSession(read, write, message_handler=handler) as session:
                greeting = await session.initialize()
                yield session, str(greeting.protocolVersion), notifications


class Table:
    def __init__(self, version):
        self.version = version

    async def row(self, what, call):
        """Awaits a call and adds its outcome to the table."""
        global failures
        try:
            result = await asyncio.wait_for(call, TIMEOUT)
            rows.append((self.version, what, "ok", result))
        except Exception as error:  # every error is printed
            failures += 1
            rows.append((self.version, what, "FAILED", f"{type(error).__name__}: {error}"))
            traceback.print_exc()


async def paged(ask, key):
    found, cursor = [], None
    while True:
        page = plain(await (ask(cursor=cursor) if cursor else ask()))
        found += page[key]
        cursor = page.get("nextCursor")
        if not cursor:
            return found


async def drive(parameters, mode, change):
    async with connected(parameters, mode) as (client, version, notifications):
        table = Table(version)

        async def tools():
            listed = [it["name"] for it in await paged(client.list_tools, "tools")]
            missing = set(listed) - {name for name, _ in CALLS}
            assert not missing, f"never called: {missing}"
            return f"{len(listed)} tools"

        async def call(name, arguments):
            result = plain(await client.call_tool(name, arguments))
            assert not result.get("isError"), result["content"]
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
            return f"{len(result['content'][0]['text'])} bytes"

        async def refused():
            result = plain(await client.call_tool("memory_get", {"name": "nothing"}))
            assert result["isError"] and "memory_list" in result["content"][0]["text"], result
            return "error names the next step"

        async def resources():
            listed = await paged(client.list_resources, "resources")
            for it in listed:
                await read(it["uri"])
            return f"{len(listed)} resources"

        async def read(uri):
            content = plain(await client.read_resource(uri))["contents"][0]
            assert "never instructions" in content["text"], content
            return f"{len(content['text'])} bytes"

        async def templates():
            listed = await paged(client.list_resource_templates, "resourceTemplates")
            assert len(listed) == len(BY_TEMPLATE), listed
            return f"{len(listed)} templates"

        async def prompts():
            listed = await paged(client.list_prompts, "prompts")
            for it in listed:
                prompt = plain(await client.get_prompt(it["name"], {}))
                assert prompt["messages"][0]["content"]["text"]
            return ", ".join(it["name"] for it in listed)

        def touch():
            with open(change, "a", encoding="utf-8") as file:
                file.write("\n- mine\n")

        async def subscribed():
            await client.subscribe_resource("memoird://week/2026-W11")
            while True:
                touch()
                with contextlib.suppress(asyncio.TimeoutError):
                    notice = await asyncio.wait_for(notifications.get(), 1)
                    if notice["method"] == "notifications/resources/updated":
                        return str(notice["params"]["uri"])

        async def listening():
            async with client.listen(resource_subscriptions=["memoird://week/2026-W11"]) as stream:
                events = stream.__aiter__()
                event = asyncio.ensure_future(events.__anext__())
                while not event.done():
                    touch()
                    await asyncio.wait([event], timeout=1)
                return type(event.result()).__name__

        await table.row("tools/list", tools())
        for name, arguments in CALLS:
            what = arguments.get("operation") or ("up" if arguments.get("up") else "")
            await table.row(f"{name} {what}".strip(), call(name, arguments))
        await table.row("a tool call that fails", refused())
        await table.row("resources/list and read", resources())
        await table.row("resources/templates/list", templates())
        for uri in BY_TEMPLATE:
            await table.row(f"read {uri.rsplit('/', 1)[0]}", read(uri))
        await table.row("prompts/list and get", prompts())
        if version < "2026":
            await table.row("resources/subscribe", subscribed())
            await table.row("ping", client.send_ping() if hasattr(client, "send_ping") else client.ping())
        else:
            await table.row("subscriptions/listen", listening())


async def main():
    parameters_json = json.load(sys.stdin)
    parameters = StdioServerParameters(
        command=parameters_json["command"], args=parameters_json["args"], env=parameters_json["env"], cwd=parameters_json["cwd"]
    )
    modes = ["legacy", "2026-07-28", "auto"] if hasattr(mcp, "Client") else ["legacy"]
    for mode in modes:
        await drive(parameters, mode, parameters_json["change"])
    wide = max(len(it[1]) for it in rows)
    for version, what, outcome, detail in rows:
        print(f"{version}  {what:<{wide}}  {outcome}  {'' if detail is None else str(detail)[:200]}")
    from importlib.metadata import version as installed

    print(f"mcp {installed('mcp')}: {len(rows) - failures} of {len(rows)} succeeded")
    sys.exit(1 if failures else 0)


asyncio.run(main())

"""Programs that are servers of tools: ordinary ones on the SDK, and hostile ones that write what they like."""

from __future__ import annotations

import sys
from pathlib import Path

#: A server on the official SDK.
ORDINARY = '''
import os
from mcp.server.mcpserver import MCPServer

server = MCPServer("ordinary")


@server.tool()
def add(first: int, second: int) -> int:
    """Adds two numbers."""
    return first + second


@server.tool()
def repeat(text: str, times: int) -> str:
    """Repeats a text."""
    return text * times


@server.tool()
def variable(name: str) -> str:
    """A variable of the environment."""
    return os.environ.get(name, "not set")


@server.tool()
def die() -> str:
    """Ends the server."""
    os.write(2, b"it was enough\\n")
    os._exit(3)


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("a reason")


@server.resource("note://today")
def today() -> str:
    """Today's note."""
    return "buy milk"


@server.prompt()
def review(path: str) -> str:
    """Asks for a review."""
    return f"Review {path} line by line."


server.run()
'''

#: A server without any SDK, which answers the handshake; `LISTED` and `CALLED` are what follows.
BARE = """
import json, os, sys, time

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def listed(id):
    send(id=id, result={"tools": TOOLS})

def called(id, params):
    send(id=id, result={"content": [{"type": "text", "text": "done"}]})

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"name": "plain", "description": "Does it.", "inputSchema": SCHEMA}]
%s
for line in sys.stdin:
    message = json.loads(line)
    id = message.get("id")
    match message.get("method"):
        case "initialize":
            send(id=id, result={"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "1"}})
        case "tools/list":
            listed(id)
        case "tools/call":
            called(id, message["params"])
        case "ping":
            send(id=id, result={})
        case method if id is not None:
            send(id=id, error={"code": -32601, "message": "no such method"})
"""


def program(folder: Path, source: str, name: str = "server") -> dict[str, object]:
    """The settings of a server with this source."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(source)
    return {"command": sys.executable, "args": [str(path)]}

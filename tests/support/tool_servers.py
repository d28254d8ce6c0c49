"""Programs that are servers of tools: on the official SDK, and without one, which can be hostile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

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

def other(id, method, params):
    send(id=id, error={"code": -32601, "message": "no such method"})

CAPABILITIES = {"tools": {}}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"name": "plain", "description": "Does it.", "inputSchema": SCHEMA}]
%s
for line in sys.stdin:
    message = json.loads(line)
    id = message.get("id")
    match message.get("method"):
        case "initialize":
            send(id=id, result={"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": CAPABILITIES, "serverInfo": {"name": "bare", "version": "1"}})
        case "tools/list":
            listed(id)
        case "tools/call":
            called(id, message["params"])
        case "ping":
            send(id=id, result={})
        case method if id is not None:
            other(id, method, message.get("params"))
"""


#: A server with five tools, a resource and a prompt.
ORDINARY = (
    BARE
    % '''
NUMBER, TEXT = {"type": "integer"}, {"type": "string"}

def offered(name, description, /, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "inputSchema": schema}

TOOLS = [
    offered("add", "Adds two numbers.", first=NUMBER, second=NUMBER),
    offered("repeat", "Repeats a text.", text=TEXT, times=NUMBER),
    offered("variable", "A variable of the environment.", name=TEXT),
    offered("die", "Ends the server."),
    offered("fail", "Fails."),
]
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}}

def today():
    """Today's note."""
    return "buy milk"

def called(id, params):
    given = params.get("arguments") or {}
    match params["name"]:
        case "add":
            text = str(given["first"] + given["second"])
        case "repeat":
            text = given["text"] * given["times"]
        case "variable":
            text = os.environ.get(given["name"], "not set")
        case "die":
            os.write(2, b"it was enough\\n")
            os._exit(3)
        case "fail":
            failed = {"type": "text", "text": "Error executing tool fail: a reason"}
            return send(id=id, result={"content": [failed], "isError": True})
    send(id=id, result={"content": [{"type": "text", "text": text}]})

def other(id, method, params):
    match method:
        case "resources/list":
            note = {"uri": "note://today", "name": "today", "description": "Today's note.", "mimeType": "text/plain"}
            send(id=id, result={"resources": [note]})
        case "resources/read":
            send(id=id, result={"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": today()}]})
        case "prompts/list":
            path = {"name": "path", "required": True}
            prompt = {"name": "review", "description": "Asks for a review.", "arguments": [path]}
            send(id=id, result={"prompts": [prompt]})
        case "prompts/get":
            text = f"Review {params['arguments']['path']} line by line."
            message = {"role": "user", "content": {"type": "text", "text": text}}
            send(id=id, result={"messages": [message]})
        case _:
            send(id=id, error={"code": -32601, "message": "no such method"})
'''
)

#: The same as `ORDINARY` on the official SDK, whose import computes 0.6 s.
ON_SDK = '''
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


#: For `BARE`: a call asks the person first, and gives the answer.
ASKS = """
ORDER = {"type": "object", "required": ["name", "colour"], "properties": {"name": {"type": "string"},
    "colour": {"type": "string", "enum": ["red", "green"]}, "sure": {"type": "boolean"}}}

def called(id, params):
    send(id="q", method="elicitation/create", params={"message": "What do you order?", "requestedSchema": ORDER})
    answer = json.loads(sys.stdin.readline())["result"]
    send(id=id, result={"content": [{"type": "text", "text": json.dumps(answer, sort_keys=True)}]})
"""


def program(folder: Path, source: str, name: str = "server") -> dict[str, object]:
    """The settings of a server with this source."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(source)
    return {"command": sys.executable, "args": [str(path)]}


#: The same over HTTP, at a port that it writes; with `auth`, it requires a login that ends after a second.
AT_ADDRESS = '''
import secrets, socket, sys, time, uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()  # a client that connects before the server runs waits
here = f"http://127.0.0.1:{listening.getsockname()[1]}"


class Provider:
    clients, codes, access, refresh, refreshed = {}, {}, {}, {}, 0

    async def get_client(self, id):
        return self.clients.get(id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        code = secrets.token_hex(16)
        self.codes[code] = AuthorizationCode(code=code, scopes=[], expires_at=time.time() + 60,
            client_id=client.client_id, code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource)
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        return self.tokens(client)

    async def load_refresh_token(self, client, token):
        return self.refresh.pop(token, None)

    async def exchange_refresh_token(self, client, token, scopes):
        self.refreshed += 1
        return self.tokens(client)

    async def load_access_token(self, token):
        return self.access.get(token)

    def tokens(self, client):
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        seconds = 1 if not self.refreshed else 3600
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=[],
            expires_at=int(time.time()) + seconds)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=[])
        return OAuthToken(access_token=access, token_type="Bearer", expires_in=seconds, refresh_token=refresh)


options = {}
if "auth" in sys.argv:
    options = dict(auth_server_provider=Provider(), auth=AuthSettings(
        issuer_url=here, resource_server_url=here + "/mcp",
        client_registration_options=ClientRegistrationOptions(enabled=True)))
server = MCPServer("there", **options)


@server.tool()
def refreshed() -> int:
    """How often a token was refreshed."""
    return Provider.refreshed if not options else options["auth_server_provider"].refreshed


print(here, flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listening])
'''


@asynccontextmanager
async def at_address(*words: str) -> AsyncGenerator[str]:
    """The address of a server at this machine."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", AT_ADDRESS, *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip() + "/mcp"
    finally:
        process.kill()
        await process.wait()

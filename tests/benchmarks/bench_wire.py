"""Connections through TLS: how many a tool loop has, and from Enter to the request over one that is open or is not."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from programs import ECHO, KEY, OUR_MARK, TUI_AGENT, home, small_workspace
from support.certificates import certificate
from support.strict import Call, Reply, Say, StrictServer, View
from support.strict.serving import Response, StrictRequest
from terminal import Terminal

from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import CallChunk, EndChunk, ModelRequest
from tui_agent.model.parts import Message, message_of

MODEL = "gpt-5.4"
ROUNDS = 10
STARTS, TURNS = 5, 9
#: A person writes so long before Enter.
WRITES_SECONDS = 3.0
TOOL = {
    "type": "function",
    "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}},
}


class Closing(StrictServer):
    """Ends each connection after its reply: every request has to open one."""

    async def _handle(self, request: StrictRequest) -> Response:
        response = await super()._handle(request)
        response.closes = True
        return response


def seen(view: View) -> Reply:
    return Reply((Say("Seen."),))


def loop(view: View) -> Reply:
    enough = len(view.results) >= ROUNDS - 1
    return Reply((Say("Seen."),)) if enough else Reply((Call("read", {}),))


def main() -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with TemporaryDirectory() as folder, small_workspace() as workspace:
        trusted, tls = certificate(Path(folder))
        with StrictServer("openai", brain=loop, model=MODEL, tls=tls) as server:
            asyncio.run(tool_loop(server, trusted))
            connections = server.connections
        first: list[float] = []
        later: dict[type[StrictServer], list[float]] = {StrictServer: [], Closing: []}
        for kind, starts in ((StrictServer, STARTS), (Closing, 1)):
            for number in range(starts):
                with kind("openai", brain=seen, model=MODEL, tls=tls) as server:
                    times = session(server, workspace, trusted, TURNS if number == 0 else 0)
                if kind is StrictServer:
                    first.append(times[0])
                later[kind] += times[1:]
    show(
        [
            Figure(f"connections of a tool loop of {ROUNDS} requests", connections, 1),
            median("Enter to the first request of a session, TLS, opened while it was written", first, 45),
            median("  later turns", later[StrictServer], 25),
            median("  later turns, if each has to open a connection", later[Closing], None),
        ]
    )


async def tool_loop(server: StrictServer, trusted: Path) -> None:
    model = ChildModel(environment={**server.environment, "SSL_CERT_FILE": str(trusted)})
    messages: tuple[Message, ...] = ({"role": "user", "content": "Read."},)
    for _ in range(ROUNDS):
        async with aclosing(model.stream(ModelRequest(f"openai/{MODEL}", messages, tools=(TOOL,)))) as stream:
            chunks = [chunk async for chunk in stream]
        end = chunks[-1]
        assert isinstance(end, EndChunk)
        ids = [chunk.id for chunk in chunks if isinstance(chunk, CallChunk) and chunk.id]
        results = ({"role": "tool", "tool_call_id": one, "content": "x"} for one in ids)
        messages = (*messages, message_of(end.parts, end.origin), *results)
    await model.close()


def session(server: StrictServer, workspace: Path, trusted: Path, turns: int) -> list[float]:
    """Milliseconds from Enter to the request, of the first turn and of more."""
    with home(server.url) as env:
        env |= {**server.environment, "SSL_CERT_FILE": str(trusted), "TUI_AGENT_MODEL": f"openai/{MODEL}"}
        with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            terminal.wait_for(ECHO)
            terminal.press("\x7f")
            terminal.settle(quiet=2)
            return [enter(terminal, server, f"and number {number}") for number in range(turns + 1)]


def enter(terminal: Terminal, server: StrictServer, words: str) -> float:
    before = len(server.requests)
    terminal.press(words)
    end = time.monotonic() + (WRITES_SECONDS if not before else 0.5)
    while (left := end - time.monotonic()) > 0:
        terminal.read(left)
    terminal.forget()
    begin = time.monotonic()
    terminal.press("\r")
    request = server.wait_for(before + 1)[before]
    terminal.wait_for("Seen.")
    terminal.settle(quiet=0.7)
    return (request.at - begin) * 1000


def median(name: str, times: list[float], limit: float | None) -> Figure:
    note = f"{min(times):.0f} to {max(times):.0f} of {len(times)}"
    return Figure(name, statistics.median(times), limit, " ms", note)


if __name__ == "__main__":
    main()

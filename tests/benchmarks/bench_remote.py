"""Sessions from elsewhere: a key in a browser page, an editor's first answers and prompt, an attach by ssh."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figures import Figure, paired, ratio, show
from programs import OUR_MARK, TUI_AGENT, home, small_workspace
from support import browser, ssh_server
from support.provider import Answer, Provider
from terminal import Terminal

KEYS, PROMPTS, PAIRS = 60, 7, 7
#: Keeps the milliseconds between a key of the page and the frame that follows the next change of the terminal.
WATCH = """
window.taken = [];
let pressed = 0;
addEventListener("keydown", () => { pressed = performance.now(); }, true);
new MutationObserver(() => {
  if (!pressed) return;
  const begun = pressed;
  pressed = 0;
  requestAnimationFrame(() => window.taken.push(performance.now() - begun));
}).observe(document.querySelector(".xterm-rows"), { childList: true, subtree: true, characterData: true });
true
"""


def main() -> None:
    figures = []
    with (
        Provider() as provider,
        TemporaryDirectory(prefix="tui-agent-") as folder,
        home(provider.url) as env,
        small_workspace() as one,
        small_workspace() as other,
    ):
        env |= {"TMPDIR": folder, "TERM": "xterm-256color"}
        provider.otherwise = lambda request: Answer("Done.")
        try:
            if browser.PROGRAM is None:
                sys.stderr.write("pages are left out: apt-get install chromium\n")
            else:
                figures.append(asyncio.run(_in_a_page(one, env, Path(folder))))
            figures += asyncio.run(_in_an_editor(other, env, provider))
            if ssh_server.PROGRAM is None:
                sys.stderr.write("ssh is left out: apt-get install openssh-server\n")
            else:
                figures += _by_ssh(one, env, Path(folder))
        finally:
            for line in _output(one, env, "ps", "--json").splitlines():
                _output(one, env, "stop", json.loads(line)["id"])
    show(figures)


def _output(workspace: Path, env: dict[str, str], *words: str) -> str:
    command = [*TUI_AGENT, *words]
    return subprocess.run(
        command, cwd=workspace, env=env, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


async def _in_a_page(workspace: Path, env: dict[str, str], folder: Path) -> Figure:
    server = await asyncio.create_subprocess_exec(
        *(*TUI_AGENT, "serve", str(workspace)), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        link = (await server.stdout.readline()).decode().strip()
        async with browser.chromium(folder / "profile") as program, program.tab() as tab:
            await tab.open(link)
            await tab.until("Shift+Tab")
            await tab.evaluate(WATCH)
            for number in range(KEYS):
                letter = chr(ord("a") + number % 26)
                await tab.press(letter, f"Key{letter.upper()}", ord(letter.upper()), text=letter)
                await tab.until_true(f"window.taken.length > {number}")
            taken: list[float] = await tab.evaluate("window.taken")
    finally:
        server.terminate()
        await server.wait()
    taken.sort()
    note = f"95 % within {taken[round(KEYS * 0.95) - 1]:.0f} ms, {KEYS} keys"
    return Figure("key to frame in a browser page, median", statistics.median(taken), 50, " ms", note)


class _Editor:
    """A client without wishes."""

    async def session_update(self, **_: Any) -> None: ...

    async def request_permission(self, **_: Any) -> Any:
        raise AssertionError("a permission was asked")

    def on_connect(self, conn: Any) -> None: ...


@asynccontextmanager
async def _editor(env: dict[str, str]) -> AsyncGenerator[Any]:
    import acp

    client: Any = _Editor()
    async with acp.spawn_agent_process(client, *TUI_AGENT, "acp", env=env) as (connection, _):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield connection


async def _in_an_editor(workspace: Path, env: dict[str, str], provider: Provider) -> list[Figure]:
    import acp

    imported, started = [], []
    for _ in range(PAIRS):
        begin = time.monotonic()
        await (await asyncio.create_subprocess_exec(sys.executable, "-c", "import acp")).wait()
        imported.append(time.monotonic() - begin)
        begin = time.monotonic()
        async with _editor(env):
            started.append(time.monotonic() - begin)
    seen = len(provider.requests)

    def arrived(begin: float) -> float:
        nonlocal seen
        seen += 1
        return provider.wait_for(seen)[-1].at - begin

    with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
        terminal.wait_for(OUR_MARK)
        terminal.settle(1)
        async with _editor(env) as connection:
            session = (await connection.new_session(cwd=str(workspace))).session_id
            screen, editor = [], []
            for number in range(PROMPTS + 1):
                terminal.press(f"prompt {number}")
                terminal.wait_for(f"prompt {number}")
                begin = time.monotonic()
                terminal.press("\r")
                screen.append(await asyncio.to_thread(arrived, begin))
                terminal.settle(0.5)
                begin = time.monotonic()
                asking = asyncio.create_task(
                    connection.prompt(session_id=session, prompt=[acp.text_block(f"prompt {number}")])
                )
                editor.append(await asyncio.to_thread(arrived, begin))
                await asking
    return [
        Figure("acp: start to the answer of initialize", statistics.median(started) * 1000, 500, " ms"),
        ratio("  against the import of the SDK alone", imported, started),
        ratio("acp: a prompt until its request, against Enter on the screen", screen[1:], editor[1:], 1.0),
    ]


def _by_ssh(workspace: Path, env: dict[str, str], folder: Path) -> list[Figure]:
    kept = dict(os.environ)
    os.environ.update(
        {name: value for name, value in env.items() if name.startswith(("TUI_AGENT_", "TMPDIR"))}
    )
    try:
        with ssh_server.far_host(folder / "far", Path(env["TUI_AGENT_HOME"])) as far:
            installed = Path(sys.executable).parent / "tui-agent"
            (far.folder / "bin" / "tui-agent").write_text(f'#!/bin/sh\nexec {installed} "$@"\n')
            near = {**env, "PATH": f"{far.folder / 'near'}:{os.environ['PATH']}"}
            session = _output(workspace, near, "--bg", "over there").strip()
            words = [*TUI_AGENT, "ssh", "far", "--attach", session]

            def bare() -> float:
                begin = time.monotonic()
                subprocess.run([str(far.folder / "near" / "ssh"), "-t", "far", "true"], check=True, stderr=-3)
                return time.monotonic() - begin

            def attached() -> float:
                with Terminal(words, workspace, near) as terminal:
                    return terminal.wait_for("over there") - terminal.started

            without, whole = paired(bare, attached, PAIRS)
    finally:
        os.environ.clear()
        os.environ.update(kept)
    more = statistics.median(ours - base for base, ours in zip(without, whole, strict=True))
    note = f"{statistics.median(whole) * 1000:.0f} ms against {statistics.median(without) * 1000:.0f} ms"
    return [Figure("ssh: attach, over a bare `ssh -t HOST true`", more * 1000, 300, " ms", note)]


if __name__ == "__main__":
    main()

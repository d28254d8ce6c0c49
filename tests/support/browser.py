"""A headless Chromium, driven over its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic", "--remote-debugging-port=0"),
    *("--window-size=1280,800", "--hide-scrollbars", "--remote-allow-origins=*", "--disable-dev-shm-usage"),
)
_SECONDS = 60.0


class Tab:
    """A page of the browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]

    async def open(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def evaluate(self, expression: str) -> Any:
        done = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        return done["result"].get("value")

    async def text(self) -> str:
        """The rows of the terminal, as drawn."""
        rows = "[...document.querySelectorAll('.xterm-rows > div')].map(row => row.textContent).join('\\n')"
        return await self.evaluate(rows) or ""

    async def until(self, words: str) -> str:
        """Waits until the terminal shows these words. Returns its text."""
        shown = ""
        try:
            async with asyncio.timeout(_SECONDS):
                while words not in (shown := await self.text()):  # noqa: ASYNC110 drawn by another process
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{words!r} is not shown in:\n{shown}") from None
        return shown

    async def until_true(self, expression: str) -> None:
        async with asyncio.timeout(_SECONDS):
            while not await self.evaluate(expression):  # noqa: ASYNC110 the state of another process
                await asyncio.sleep(0.05)

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, code: str, number: int, *, modifiers: int = 0, text: str = "") -> None:
        """Presses and releases a key. Modifiers: 1 Alt, 2 Ctrl, 8 Shift."""
        named = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    async def picture(self) -> bytes:
        """The page as a PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])


class Browser:
    """A running Chromium."""

    def __init__(self, address: str) -> None:
        self._address = address

    @asynccontextmanager
    async def tab(self) -> AsyncGenerator[Tab]:
        async with connect(f"ws://{self._address}", max_size=None) as whole:
            target = (await Tab(whole).call("Target.createTarget", url="about:blank"))["targetId"]
            port = self._address.partition("/")[0]
            async with connect(f"ws://{port}/devtools/page/{target}", max_size=None) as socket:
                tab = Tab(socket)
                await tab.call("Page.enable")
                yield tab
            await Tab(whole).call("Target.closeTarget", targetId=target)


@asynccontextmanager
async def chromium(profile: Path) -> AsyncGenerator[Browser]:
    """A browser with an empty profile."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": tempfile.gettempdir()},  # its sockets need short names
    )
    try:
        place = profile / "DevToolsActivePort"
        async with asyncio.timeout(_SECONDS):
            while not place.exists() or "\n" not in place.read_text():
                assert process.returncode is None, "chromium ended"
                await asyncio.sleep(0.05)
        port, path = place.read_text().split("\n")[:2]
        yield Browser(f"127.0.0.1:{port}{path}")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()

"""`tui-agent serve`: the screen in a real browser, and requests that it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.browser import PROGRAM, chromium
from support.certificates import certificate, needs_openssl
from support.program import run
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tui_agent.browser import server
from tui_agent.errors import UsageError
from tui_agent.headless import serve_command

PATIENCE = 60.0


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    (tmp_path / "sockets").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "sockets"))
    monkeypatch.setenv("TUI_AGENT_HOME", str(home))
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


class Served:
    """A running `tui-agent serve`."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process, self._folder = process, folder
        self.link = ""

    async def next_link(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return await self.read_link()

    async def read_link(self) -> str:
        assert self._process.stdout is not None
        self.link = (await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)).decode().strip()
        return self.link

    @property
    def authority(self) -> str:
        return urlsplit(self.link).netloc

    async def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of a request."""
        host, port = self.authority.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": self.authority, **headers}.items())
        writer.write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        head, _, body = (await asyncio.wait_for(reader.read(), PATIENCE)).decode().partition("\r\n\r\n")
        writer.close()
        first, *rest = head.split("\r\n")
        found = dict(line.split(": ", 1) for line in rest)
        return int(first.split()[1]), found, body

    async def sign_in(self) -> str:
        """The cookie."""
        link = urlsplit(await self.next_link())
        status, headers, _ = await self.get(f"{link.path}?{link.query}")
        assert (status, headers["Location"]) == (303, "/")
        assert headers["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
        return headers["Set-Cookie"].partition(";")[0]

    def terminal(self, cookie: str, origin: str = "", query: str = "") -> Any:
        return connect(
            f"ws://{self.authority}/terminal{query}",
            origin=Origin(origin or f"http://{self.authority}"),
            additional_headers={"Cookie": cookie},
            max_size=None,
        )

    def sessions(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run("ps", "--json", folder=self._folder).stdout.splitlines()]


@asynccontextmanager
async def served(folder: Path, *words: str) -> AsyncGenerator[Served]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tui_agent", "serve", str(folder), *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
    )
    found = Served(process, folder)
    try:
        await found.read_link()
        yield found
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE)
        for session in found.sessions():
            await asyncio.to_thread(run, "stop", session["id"], folder=folder)


async def output_until(terminal: ClientConnection, words: bytes) -> bytes:
    """The bytes that the terminal got until these words."""
    found = b""
    try:
        async with asyncio.timeout(PATIENCE):
            while words not in found:
                message = await terminal.recv()
                found += message if isinstance(message, bytes) else b""
    except TimeoutError:
        raise AssertionError(f"{words!r} is not in {found!r}") from None
    return found


@pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: apt-get install chromium")
async def test_the_screen_in_a_browser_takes_keys_and_survives_a_reload(
    workspace: Path, tmp_path: Path
) -> None:
    async with served(workspace) as it, chromium(tmp_path / "profile") as browser, browser.tab() as tab:
        await tab.open(it.link)
        await tab.until("Choose a model by its digit")
        await tab.until_true("location.search.startsWith('?session=')")
        assert "token" not in await tab.evaluate("location.href")
        await tab.type("héllo 日本")
        await tab.until("héllo 日本")
        await tab.press("F1", "F1", 112)
        await tab.until("Quit (press twice)")
        await tab.press("Escape", "Escape", 27)
        await tab.until("Who answers?")
        address = await tab.evaluate("location.href")
        await tab.call("Page.reload")
        await tab.until("héllo 日本")
        assert await tab.evaluate("location.href") == address
        (session,) = it.sessions()
        assert session["attached"] and session["id"] in address
        # A browser that was signed in needs no link; the newest page has the terminal.
        async with browser.tab() as second:
            await second.open(f"http://{it.authority}/")
            await second.until("héllo 日本")
            await tab.until_true("document.getElementById('ended').open")
            await second.type("!")
            await second.until("héllo 日本!")
        await tab.evaluate("document.querySelector('button').click()")
        await tab.until("héllo 日本!")
        colours = await tab.evaluate("document.querySelector('.xterm-rows span').outerHTML")
        assert "#" in colours, "the page has all colours"


@pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: apt-get install chromium")
async def test_keys_that_a_browser_keeps_have_twins(workspace: Path, tmp_path: Path) -> None:
    async with served(workspace) as it, chromium(tmp_path / "profile") as browser, browser.tab() as tab:
        await tab.open(it.link)
        await tab.until("Choose a model by its digit")
        await tab.type("!sleep 600")
        await tab.press("Enter", "Enter", 13, text="\r")
        await tab.until("stops")
        await tab.press("t", "KeyT", 84, modifiers=1)
        await tab.until("stopped")


async def test_a_link_works_once_and_only_for_this_host_and_origin(workspace: Path) -> None:
    async with served(workspace) as it:
        link = urlsplit(it.link)
        assert (await it.get("/"))[0] == 403
        assert (await it.get(f"/?{link.query}x"))[0] == 403
        assert (await it.get(f"/?{link.query}", Host="evil.example"))[0] == 403, "DNS rebinding"
        status, headers, _ = await it.get(f"/?{link.query}")
        cookie = headers["Set-Cookie"].partition(";")[0]
        assert (status, (await it.get(f"/?{link.query}"))[0]) == (303, 403), "used"
        status, headers, body = await it.get("/", Cookie=cookie)
        assert (
            status == 200 and "page.js" in body and "default-src 'none'" in headers["Content-Security-Policy"]
        )
        assert (await it.get("/", Cookie=f"{cookie}x"))[0] == 403
        for path in ("/../server.py", "/xterm/../../server.py", "/xterm/%2e%2e/index.html", "/xterm"):
            assert (await it.get(path, Cookie=cookie))[0] == 404, path
        for origin in (
            "http://evil.example",
            "null",
            f"https://{it.authority}",
            f"http://{it.authority}.evil.example",
        ):
            with pytest.raises(InvalidStatus, match="403"):
                async with it.terminal(cookie, origin):
                    pass
        assert it.sessions() == []


async def test_fifty_pages_begin_one_session_and_one_that_never_reads_delays_nobody(workspace: Path) -> None:
    async with served(workspace) as it:
        cookie = await it.sign_in()
        opened = [await it.terminal(cookie) for _ in range(50)]
        try:
            for one in opened:
                await one.send('{"size": [80, 24]}')
            first = [await asyncio.wait_for(one.recv(), PATIENCE) for one in opened]
            (session,) = it.sessions()
            assert set(first) == {json.dumps({"session": session["id"]})}
        finally:
            for one in opened:
                one.transport.abort()
        silent = await it.terminal(cookie)
        await silent.send('{"size": [500, 200]}')
        async with it.terminal(cookie) as page:
            await page.send('{"size": [100, 30]}')
            await output_until(page, b"Chat")
            await page.send(b"typed there")
            await output_until(page, b"there")
        silent.transport.abort()


@pytest.mark.parametrize(
    "frame",
    [
        b"\x82\xff" + (100_000_000).to_bytes(8) + b"mask",
        '{"size": [1e999, 2]}',
        '{"size": ' * 100_000,
        "[]",
        '{"size": ["a", 1]}',
        '{"size": [-5, 99999999]}',
    ],
    ids=["100 MB", "infinite", "deep", "list", "words", "sizes"],
)
async def test_a_bad_frame_ends_at_most_its_page(workspace: Path, frame: str | bytes) -> None:
    async with served(workspace) as it:
        cookie = await it.sign_in()
        async with it.terminal(cookie) as page:
            await page.send('{"size": [80, 24]}')
            await output_until(page, b"Chat")
            if isinstance(frame, bytes):
                page.transport.write(frame)
                await page.wait_closed()
                assert page.close_code == 1009, "the frame is refused by its length"
            else:
                await page.send(frame)
        async with it.terminal(cookie) as page:
            await page.send('{"size": [80, 24]}')
            await output_until(page, b"Chat")


EDITOR = """
import os, signal, sys
def interrupted(*_):
    with open(sys.argv[1], "w") as file:
        file.write(f"interrupted in {os.path.basename(os.getcwd())}")
    sys.exit(0)
signal.signal(signal.SIGINT, interrupted)
assert os.tcgetpgrp(os.open("/dev/tty", os.O_RDWR)) == os.getpgrp()
print("IN THE", "EDITOR", flush=True)
signal.pause()
"""


async def test_an_editor_is_in_the_foreground_of_the_page_and_ends_with_it(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text(EDITOR)
    monkeypatch.setenv("TUI_AGENT_MODEL", "openai/test-model")
    monkeypatch.setenv("VISUAL", shlex.join([sys.executable, str(script)]))
    async with served(workspace) as it:
        cookie = await it.sign_in()
        async with it.terminal(cookie) as page:
            await page.send('{"size": [100, 30]}')
            await output_until(page, b"Chat")
            await page.send(b"a request")
            await output_until(page, b"request")
            await page.send(b"\x18\x05")
            await output_until(page, b"IN THE EDITOR")
            await page.send(b"\x03")
            await output_until(page, b"interrupted")
            await page.send(b" typed")
            await output_until(page, b"typed")
            await page.send(b"\x18\x05")
            await output_until(page, b"IN THE EDITOR")
        async with it.terminal(cookie) as page:
            await page.send('{"size": [100, 30]}')
            await output_until(page, f"interrupted in {Path.cwd().name} typed".encode())
            async with asyncio.timeout(PATIENCE):
                while await (await asyncio.create_subprocess_exec("pgrep", "-f", script)).wait() == 0:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("Example.ORG.", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("0:0:0:0:0:0:0:1", "::1"),
        *((name, "") for name in ("https://x", "x:80", "a b", "", "..")),
    ],
)
def test_the_name_of_links_is_the_one_that_browsers_send(name: str, host: str) -> None:
    if host:
        assert serve_command.host_of(name) == host
    else:
        with pytest.raises(UsageError, match="not a host name"):
            serve_command.host_of(name)


async def test_a_link_has_no_usual_port(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = server.BrowserServer(workspace, "http", "127.0.0.1")
    async with it.listening("127.0.0.1", 0, None) as first:
        port = first.sockets[0].getsockname()[1]
    monkeypatch.setitem(server.USUAL_PORTS, "http", port)
    async with it.listening("127.0.0.1", port, None):
        link = urlsplit(it.new_link())
        assert link.netloc == "127.0.0.1"
        for path, status in ((f"/?{link.query}", b"303"), ("//[x", b"404")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {link.netloc}\r\n\r\n".encode())
            assert (await asyncio.wait_for(reader.read(), PATIENCE)).split()[1] == status
            writer.close()


@needs_openssl
async def test_other_addresses_need_a_certificate(workspace: Path, tmp_path: Path) -> None:
    for words in (
        ("--address", "0.0.0.0"),
        ("--address", "::"),
        ("--certificate", "x.pem"),
        ("--address", "example.org"),
        ("--address", "0.0.0.0", "--certificate", "x.pem", "--key", "x.pem"),
    ):
        done = await asyncio.to_thread(run, "serve", *words, folder=workspace)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    made, _ = await asyncio.to_thread(certificate, tmp_path)
    words = ("--certificate", str(made), "--key", str(made.with_name("key.pem")))
    async with served(workspace, *words) as it:
        assert it.link.startswith("https://127.0.0.1:")
        context, port = ssl.create_default_context(cafile=made), it.authority.rsplit(":", 1)[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port), ssl=context)
        link = urlsplit(it.link)
        writer.write(f"GET /?{link.query} HTTP/1.1\r\nHost: {link.netloc}\r\n\r\n".encode())
        assert b"; Secure" in await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()

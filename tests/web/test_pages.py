"""Pages of the web as text, from servers on loopback."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.page_program import on_loopback
from support.sessions import calls, model_of, open_session, reply
from support.trees import until

from tui_agent.errors import ChildFailed, TuiAgentError
from tui_agent.processes.child import ChildProcess
from tui_agent.web import page_reader, pages
from tui_agent.web.page_reader import MOST_BYTES, as_markdown, read_page
from tui_agent.web.pages import Pages

PAGE = b"""<html><head><title>Time &amp; outs</title><script>steal()</script></head><body><nav>menu</nav>
<main><h1>Timeouts</h1><p>Use <code>timeout=5</code>, see <a href="/more">more</a>.</p>
<pre>with x:\n    pass</pre></main></body></html>"""


def on_this_machine() -> ChildProcess:
    return ChildProcess(
        "support.page_program", name="web", env={"PYTHONPATH": str(Path(__file__).parents[1])}
    )


def answer(body: bytes, kind: str = "text/html", status: str = "200 OK", more: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n{more}Connection: close"
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}\r\n\r\n".encode() + body


@asynccontextmanager
async def served(**answers: bytes) -> AsyncGenerator[tuple[str, list[str]]]:
    """A server: its address, and the requests that it got. The path / is `root`."""
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            requests.append(head)
            path = head.split(" ")[1].strip("/").partition("?")[0] or "root"
            if path == "never":
                await asyncio.Event().wait()
            writer.write(answers.get(path, answer(b"", status="404 Not Found")))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://docs.test:{port}", requests
    finally:
        server.close()


async def test_a_page_is_read_as_markdown_without_cookies() -> None:
    moved = answer(b"", status="302 Found", more="Location: /\r\nSet-Cookie: a=b\r\n")
    async with served(root=answer(PAGE), moved=moved) as (url, requests):
        page = await read_page(f"{url}/moved", on_loopback)
    assert page["title"] == "Time & outs" and page["url"] == f"{url}/" and not page["cut"]
    assert page["text"].startswith("# Timeouts\n\nUse `timeout=5`, see [more](/more).")
    assert "    pass" in page["text"] and "steal" not in page["text"] and "menu" not in page["text"]
    assert len(requests) == 2 and not any("cookie" in one.lower() for one in requests)


async def test_other_text_stays_as_it_is_in_its_encoding() -> None:
    latin = answer("größe <b>".encode("latin-1"), "text/plain; charset=latin-1")
    odd = answer(b"x", "text/plain; charset=nonsense")
    packed = answer(gzip.compress(b'{"a": 1}'), "application/json", more="Content-Encoding: gzip\r\n")
    async with served(latin=latin, odd=odd, packed=packed) as (url, _):
        texts = [(await read_page(f"{url}/{one}", on_loopback))["text"] for one in ("latin", "odd", "packed")]
    assert texts == ["größe <b>", "x", '{"a": 1}']


async def test_a_page_ends_at_its_limit_even_if_it_is_compressed() -> None:
    bomb = answer(gzip.compress(b"x" * (64 << 20)), "text/plain", more="Content-Encoding: gzip\r\n")
    async with served(bomb=bomb) as (url, _):
        page = await read_page(f"{url}/bomb", on_loopback)
    assert page["cut"] and len(page["text"]) == MOST_BYTES


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("gone", "status 404"),
        ("picture", "not text (image/png)"),
        ("binary", "not text"),
        ("elsewhere", "is at https://evil.test/x now"),
        ("downgraded", "is at http://docs.test/ now"),
        ("round", "redirected more than"),
        ("garbage", "cannot be read"),
        ("file", "is not an address of a page"),
        ("nested", "has no text"),
        ("brackets", r"http://[bad/ is not an address"),
    ],
)
async def test_a_page_that_cannot_be_read_is_one_sentence(path: str, sentence: str) -> None:
    def moved(to: str) -> bytes:
        return answer(b"", status="301 Moved", more=f"Location: {to}\r\n")

    answers = {
        "picture": answer(b"\x89PNG", "image/png"),
        "binary": answer(b"a\0b", ""),
        "elsewhere": moved("https://evil.test/x"),
        "downgraded": moved("http://docs.test/"),
        "round": moved("/round"),
        "garbage": b"\xff\xfe no http\r\n\r\n",
        "file": moved("file:///etc/passwd"),
        "brackets": moved("http://[bad/"),
        "nested": answer(b"<div>" * 100_000),
    }
    async with served(**answers) as (url, _):
        with pytest.raises(
            TuiAgentError, match="(?s)" + sentence.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")
        ):
            await read_page(f"{url}/{path}", on_loopback)


async def test_letters_beyond_ascii_and_spaces_in_an_address_are_encoded() -> None:
    moved = answer(b"", status="301 Moved", more="Location: /größe?q=a b\r\n")
    async with served(moved=moved, **{"gr%C3%B6%C3%9Fe": answer(PAGE)}) as (url, requests):
        page = await read_page(f"{url.replace('docs', 'döcs')}/moved?a=%20ü", on_loopback)
    assert page["title"] == "Time & outs" and page["url"].endswith("/gr%C3%B6%C3%9Fe?q=a%20b")
    assert requests[0].startswith("GET /moved?a=%20%C3%BC HTTP/1.1\r\nhost: xn--dcs-sna.test:")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "http://[::1]:1/",
        "http://0x7f000001:1/",
        "http://2130706433:1/",
        "http://169.254.169.254/latest/meta-data",
        "http://user:word@docs.test/",
        "ftp://docs.test/",
        "http://",
        "http://[bad/",
        "http://docs.test:99999/",
        "http://①27.0.0.1:1/",
        "http://127。0。0。1:1/",
        "http://größe..test/",
    ],
)
async def test_addresses_that_are_not_public_are_refused(url: str) -> None:
    with pytest.raises(TuiAgentError, match=r"not public|not an address"):
        await read_page(url)


async def test_a_name_is_resolved_once_for_a_connection() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    async with served(root=answer(PAGE)) as (url, _):
        await read_page(url, resolve)
    assert asked == ["docs.test"]


def test_a_page_without_a_body_is_text_too() -> None:
    assert as_markdown("just words") == ("", "just words")
    assert as_markdown("<p>a</p>\n\n\n\n\n<p>b</p>")[1] == "a\n\nb"


async def test_a_server_that_never_answers_holds_up_one_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Pages(on_this_machine)
    async with served(root=answer(PAGE)) as (url, _):
        try:
            assert (await reader.read(url)).title == "Time & outs"
            monkeypatch.setattr(pages, "WITHIN", 1.0)
            with pytest.raises(ChildFailed):
                await reader.read(f"{url}/never")
            monkeypatch.setattr(pages, "WITHIN", 30.0)
            assert (await reader.read(f"{url}/?2")).title == "Time & outs"
        finally:
            await reader.close()


async def test_the_wait_for_a_server_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "WAIT", 0.2)
    async with served() as (url, _):
        with pytest.raises(TuiAgentError, match="did not answer within"):
            await read_page(f"{url}/never", on_loopback)


async def test_the_model_reads_pages_of_a_host_that_the_person_allowed(tmp_path: Path) -> None:
    async with served(root=answer(PAGE), other=answer(b"Other.", "text/plain")) as (url, requests):

        def fetch(path: str, **more: int):
            return calls(("fetch_page", {"pages": [{"url": f"{url}/{path}", **more}]}))

        replies = [fetch("?a"), fetch("other"), fetch("other", **{"from": 2}), reply("Done.")]
        async with open_session(
            tmp_path, replies, overrides=("tools.web=true",), protocol="tools", interactive=True
        ) as session:
            session.pages = Pages(on_this_machine)
            await session.chat.submit("Read the documentation.")
            await until(lambda: session.state.asked is not None, "the question")
            question = session.state.asked
            assert question is not None and f"{url}/?a" in question.preview and not requests
            assert "applies to all pages of docs.test:" in question.preview
            await session.chat.permit(question.call, "session", "")
            await session.chat.finished()
            sent = [message for request in model_of(session).requests for message in request.messages]
        texts = [str(message) for message in sent]
        assert any("# Timeouts" in one and "## WEB PAGE" in one for one in texts)
        assert any(", from 2" in one and "her." in one for one in texts)
        assert len(requests) == 2


async def test_pages_are_no_tool_unless_switched_on(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("Done.")], protocol="tools") as session:
        await session.chat.submit("Hello")
        await session.chat.finished()
        offered = [tool["function"]["name"] for tool in model_of(session).requests[0].tools]
    assert "fetch_page" not in offered and "read_files" in offered

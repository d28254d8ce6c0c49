"""The proxy of a view: allowed hosts are reached, all others are refused and listed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import open_session
from support.trees import until

from tui_agent.sandbox.proxy import HostProxy, Target, allowed, parse_allowed
from tui_agent.web.addresses import is_public


@asynccontextmanager
async def proxy(
    *entries: str, addresses: dict[str, list[str]] | None = None
) -> AsyncGenerator[tuple[HostProxy, int]]:
    async def resolve(host: str, port: int) -> list[str]:
        return (addresses or {})[host]

    served = HostProxy([parse_allowed(one) for one in entries], resolve=resolve)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await served.serve(listener.fileno())
        try:
            yield served, listener.getsockname()[1]
        finally:
            await served.close()


async def asked(port: int, *requests: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        writer.write(request)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """A server that repeats what it receives."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_an_allowed_port_of_this_machine_is_reached_both_ways() -> None:
    async with echo() as port, proxy(f"host.local:{port}") as (_, at):
        tunnel = f"CONNECT host.local:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        got = await asked(at, tunnel, b"a" * 1_000_000)
        assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"a" * 1_000_000)
        for named, path in (("/a?b", "/a?b"), ("//a#c", "//a"), ("?b", "/?b"), ("", "/")):
            line = f"GET http://u:p@host.local:{port}{named} HTTP/1.1\r\nHost: other\r\nProxy-X: 1\r\n\r\n"
            sent = f"GET {path} HTTP/1.1\r\nHost: host.local:{port}\r\nConnection: close\r\n\r\n"
            assert await asked(at, line.encode()) == sent.encode()


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT 127.0.0.1:443",
        "CONNECT [::1]:443",
        "CONNECT 2130706433:443",
        "CONNECT 0x7f.1:443",
        "CONNECT localhost:443",
        "CONNECT other.example:443",
        "CONNECT good.example:22",
        "CONNECT good.example:443:443",
        "CONNECT good.example.evil.example:443",
        "CONNECT good.example%00.evil:443",
        "CONNECT good.example:99999999999999999999",
        "CONNECT good.example:-443",
        "CONNECT xn--good-.example:443",
        "CONNECT \u0261ood.example:443",
        "CONNECT 127.1:443",
        "CONNECT [fe80::1%25eth0]:443",
        "CONNECT good.example@127.0.0.1:443",
        "GET http://good.example@127.0.0.1:443/",
        "GET file:///etc/passwd",
        "GET http://good.example/",
        "GET http://127.0.0.1:443/",
        "GET http://good.example:99999/",
        "GET http://[::1/",
        "GET http://good.\u2100.example/",
        "GET /",
        "CONNECT",
    ],
)
async def test_nothing_else_is_reached(request_line: str) -> None:
    async with proxy("good.example", addresses={"good.example": ["127.0.0.1"]}) as (_, at):
        got = await asked(at, f"{request_line} HTTP/1.1\r\n\r\n".encode())
        assert got.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))


async def test_a_slow_head_and_a_half_open_connection_end_and_hold_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_agent.sandbox.proxy.HEAD_WITHIN", 0.5)
    async with echo() as port, proxy(f"host.local:{port}") as (served, at):
        slow, _ = await asyncio.open_connection("127.0.0.1", at)
        reader, writer = await asyncio.open_connection("127.0.0.1", at)
        writer.write(f"CONNECT host.local:{port} HTTP/1.1\r\n\r\n".encode())
        assert b"200" in await reader.readuntil(b"\r\n\r\n")
        writer.write_eof()  # The other direction stays open until the server closes it.
        assert await asyncio.wait_for(reader.read(), 10) == b""
        assert (await asked(at, f"CONNECT host.local:{port} HTTP/1.1\r\n\r\n".encode())).startswith(
            b"HTTP/1.1 200"
        )
        assert await asyncio.wait_for(slow.read(), 10) == b""
        await until(lambda: not served._connections, "the end of all connections")


@pytest.mark.parametrize("spelled", ["GOOD.example", "good.example.", "Good.Example."])
async def test_a_name_is_one_in_every_spelling_and_its_private_address_is_refused(spelled: str) -> None:
    async with proxy("good.example", addresses={"good.example": ["10.0.0.1"]}) as (served, at):
        got = await asked(at, f"CONNECT {spelled}:443 HTTP/1.1\r\n\r\n".encode())
        assert b"not public" in got
        assert not served.refused


async def test_refused_hosts_are_listed_once_with_their_count_and_can_be_allowed() -> None:
    told: list[Target] = []
    async with proxy(addresses={"a.example": ["10.0.0.1"]}) as (served, at):
        served._on_refused = told.append
        for _ in range(3):
            await asked(at, b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        assert told == [Target("a.example", 443)] and served.refused == {told[0]: 3}
        served.allowed.add(told[0])
        assert b"not public" in await asked(at, b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")


async def test_a_head_without_end_is_refused() -> None:
    async with proxy() as (_, at):
        assert await asked(at, b"CONNECT a.example:443 HTTP/1.1\r\nX: " + b"x" * 200_000) == b""


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        *((one, False) for one in ("10.1.2.3", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1")),
        *((one, False) for one in ("::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1")),
        *(
            (one, False)
            for one in ("fec0::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "192.88.99.1")
        ),
        *(
            (one, False)
            for one in ("5f00::1", "3fff::1", "2002:7f00:1::", "2001:0:5ef5:79fd:0:0:80ff:fffe", "::")
        ),
        *((one, True) for one in ("64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::", "2606:4700::1111")),
        ("no address", False),
    ],
)
def test_only_public_addresses_are_connected(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    "entry", ["", "127.0.0.1", "a b", "*.example", "a.example:0", "a.example:x", "-" * 64]
)
def test_what_is_no_host_is_not_accepted(entry: str) -> None:
    with pytest.raises(ValueError):
        parse_allowed(entry)


@pytest.mark.parametrize(
    ("entry", "host", "port", "shown"),
    [
        (" Good.Example. ", "good.example", 443, "good.example"),
        ("good.example:443", "good.example", 443, "good.example"),
        ("good.example:80", "good.example", 80, "good.example:80"),
        ("a_b-c.example:65535", "a_b-c.example", 65535, "a_b-c.example:65535"),
        ("b\u00fccher.example", "xn--bcher-kva.example", 443, "xn--bcher-kva.example"),
        (f"{'a' * 63}.example", f"{'a' * 63}.example", 443, f"{'a' * 63}.example"),
        ("1.example", "1.example", 443, "1.example"),
        ("localhost", "localhost", 443, "localhost"),
    ],
)
def test_an_entry_is_a_host_with_or_without_a_port(entry: str, host: str, port: int, shown: str) -> None:
    found = parse_allowed(entry)
    assert (found, str(found)) == (Target(host, port), shown)


@pytest.mark.parametrize(
    "entry",
    [f"{'a' * 64}.example", "a..example", f"{'a.' * 127}b", "a.example:65536", "1.2", "0x1", "[::1]", "a/b"],
)
def test_a_name_beyond_the_rules_of_names_is_no_host(entry: str) -> None:
    with pytest.raises(ValueError):
        parse_allowed(entry)
    assert allowed([entry, "good.example"]) == {Target("good.example", 443)}


async def test_every_address_of_a_host_is_tried_and_an_unreachable_host_is_an_answer() -> None:
    here = Target("good.example", 443)
    async with echo() as port:
        served = HostProxy([here, Target("far.example", 443)], resolve=_unreachable, here={here: port})
        with socket.create_server(("127.0.0.1", 0)) as listener:
            await served.serve(listener.fileno())
            at = listener.getsockname()[1]
            try:
                got = await asked(at, b"CONNECT good.example:443 HTTP/1.1\r\n\r\n", b"hello")
                assert got == b"HTTP/1.1 200 Connection established\r\n\r\nhello"
                head, _, body = (await asked(at, b"CONNECT far.example:443 HTTP/1.1\r\n\r\n")).partition(
                    b"\r\n\r\n"
                )
            finally:
                await served.close()
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 502 Bad Gateway"
    assert body == b"tui-agent: far.example cannot be reached: no route.\n"
    assert f"Content-Length: {len(body)}".encode() in lines and b"Connection: close" in lines


async def _unreachable(host: str, port: int) -> list[str]:
    raise OSError("no route")


async def test_refused_targets_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.sandbox.proxy.MOST_REFUSED", 2)
    told: list[Target] = []
    async with proxy() as (served, at):
        served._on_refused = told.append
        for name in ("a", "b", "c", "a"):
            assert b"403" in await asked(at, f"CONNECT {name}.example:443 HTTP/1.1\r\n\r\n".encode())
        assert served.refused == {Target("a.example", 443): 2, Target("b.example", 443): 1}
        assert told == list(served.refused)


async def test_connections_beyond_a_number_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.sandbox.proxy.MOST_CONNECTIONS", 1)
    async with proxy() as (served, at):
        reader, writer = await asyncio.open_connection("127.0.0.1", at)
        await until(lambda: served._connections, "the first connection")
        assert await asked(at, b"CONNECT a.example:443 HTTP/1.1\r\n\r\n") == b""
        writer.write(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 403")
        writer.close()


async def test_commands_reach_the_hosts_of_the_setting_and_no_other(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    ask = (
        'import os,socket,sys;s=socket.create_connection(("127.0.0.1",int(os.environ["HTTPS_PROXY"].split(":")[2])));'
        's.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode());print(s.recv(99).split()[1].decode())'
    )
    async with (
        echo() as port,
        open_session(root, overrides=(f'trial.network=["host.local:{port}"]',)) as session,
    ):
        for target, status in ((f"host.local:{port}", "200"), ("host.local:1", "403")):
            number = await session.commands.run(f"python3 -c '{ask}' {target}")
            await session.commands.ended()
            result = next(one for one in session.state.commands.results if one.id == number)
            assert result.output.strip() == status, result.output

"""Why no connection came about: as the libraries raise it, and on loopback through the client that asks directly."""

# The words are on a line each, as they came.
# ruff: noqa: E501

from __future__ import annotations

import asyncio
import errno
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tui_agent.errors import Unreachable
from tui_agent.model import direct_client
from tui_agent.model.event_stream import Wire, watch
from tui_agent.model.provider_errors import Meaning, explain

MODEL = "openai/test-model"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
SIGN_IN = "sign in to the network"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy and no certificate of the machine's, and a client of this test's own."""
    for name in (*PROXIES, *map(str.lower, PROXIES), "SSL_CERT_FILE", "SSL_VERIFY"):
        monkeypatch.delenv(name, raising=False)
    direct_client.client.cache_clear()
    yield
    direct_client.client.cache_clear()


def caused(*errors: BaseException) -> BaseException:
    """The first error, each caused by the next one."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def untrusted(reason: str) -> BaseException:
    words = f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {reason} (_ssl.c:1006)"
    return caused(httpx.ConnectError(words), ssl.SSLCertVerificationError(1, words))


def no_connection(number: int, words: str) -> BaseException:
    return caused(httpx.ConnectError("All connection attempts failed"), OSError(number, words))


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (untrusted("self-signed certificate in certificate chain"), r"not trusted \(self-signed .* company's proxy", "SSL_CERT_FILE"),
        (untrusted("unable to get local issuer certificate"), "not trusted .unable to get local issuer", "SSL_CERT_FILE"),
        (untrusted("certificate has expired"), "not valid at this time", "clock"),
        (untrusted("certificate is not yet valid"), "not valid at this time", "clock"),
        (untrusted("Hostname mismatch, certificate is not valid for 'api.openai.com'."), "belongs to another server", SIGN_IN),
        (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"), "does not support TLS", "http://"),
        (httpx.ProxyError("407 Proxy Authentication Required"), "requires a user name and a password", "HTTPS_PROXY to http://name:password@host:port"),
        (httpx.ProxyError("511 Network Authentication Required"), "requires a sign-in", SIGN_IN),
        (httpx.ProxyError("302 Found"), "requires a sign-in", SIGN_IN),
        (httpx.ProxyError("403 Forbidden"), r"does not allow a connection .*\(403 Forbidden\)", "NO_PROXY"),
        (httpx.ProxyError("502 Bad Gateway"), "cannot reach the server", "check the proxy"),
        (httpx.ProxyError("[Errno 111] Connection refused"), "The proxy .* cannot be reached", "HTTPS_PROXY"),
        (ValueError("Unknown scheme for proxy URL URL('ftp://name:secret@x')"), "proxy .* cannot be used", "HTTP proxy"),
        (ImportError("Using SOCKS proxy, but the 'socksio' package is not installed."), "proxy .* cannot be used", "HTTP proxy"),
        (caused(httpx.ConnectError("x"), socket.gaierror(-2, "Name or service not known")), "name of the server .* cannot be looked up", "network connection, and OPENAI_API_BASE"),
        (httpx.ConnectError("[Errno -3] Temporary failure in name resolution"), "cannot be looked up", "network connection"),
        (no_connection(errno.ENETUNREACH, "Network is unreachable"), "no network route", "VPN"),
        (no_connection(errno.EHOSTUNREACH, "No route to host"), "no network route", "VPN"),
        (no_connection(errno.ECONNREFUSED, "Connection refused"), "The server of openai/test-model cannot be reached", "check that it runs"),
        (caused(httpx.ConnectError("All"), ExceptionGroup("x", [ConnectionRefusedError(111, "no"), OSError(errno.ENETUNREACH, "no")])), "no network route", "VPN"),
    ],
)  # fmt: skip
def test_what_kept_us_out(error: BaseException, what: str, remedy: str) -> None:
    litellms = type(
        "InternalServerError", (Exception,), {"__module__": "litellm.exceptions", "status_code": 500}
    )
    for raised in (
        error,
        caused(litellms("litellm.InternalServerError: OpenAIException - Connection error."), error),
    ):
        broken = "broke the connection" if isinstance(error, httpx.ProxyError) else ""
        meaning = explain(raised, MODEL, Wire(broken=broken))
        assert type(meaning.error) is Unreachable
        assert re.search(what, meaning.error.what)
        assert re.search(remedy, meaning.error.remedy)
        assert (meaning.again, meaning.connection) == (False, True)
        assert "secret" not in str(meaning.error)


def test_an_error_with_a_certificate_in_its_words_does_not_hide_an_answer() -> None:
    meaning = explain(
        untrusted("certificate has expired"), MODEL, Wire(accepted=True, broken="broke the connection")
    )
    assert "before any text" in meaning.error.what


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answers(raw: str) -> Serve:
    """A server that reads the head of a request and answers with this."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw.replace("\n", "\r\n").encode())
        await writer.drain()
        writer.close()

    return serve


async def asked(monkeypatch: pytest.MonkeyPatch, address: str, **variables: str) -> Meaning:
    """What it means that a request to this address failed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key")
    monkeypatch.setenv("OPENAI_API_BASE", address)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    wire = Wire()
    watch(wire)
    raised: Exception = ValueError("the server answered")
    try:
        await direct_client.client().post(address, json={"stream": True}, timeout=10)
    except Exception as error:
        raised = error
    await direct_client.client().aclose()
    return explain(raised, MODEL, wire)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ("407 Proxy Authentication Required", "requires a user name and a password"),
        ("511 Network Authentication Required", "requires a sign-in"),
        ("403 Forbidden", "does not allow a connection"),
        ("503 Service Unavailable", "cannot reach the server"),
    ],
)
async def test_a_proxy_that_lets_nobody_through(
    monkeypatch: pytest.MonkeyPatch, answer: str, what: str
) -> None:
    async with await asyncio.start_server(answers(f"HTTP/1.1 {answer}\n\n"), "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        proxied = f"http://name:secret@127.0.0.1:{port}"
        meaning = await asked(monkeypatch, "https://api.openai.invalid/v1", HTTPS_PROXY=proxied)
    assert what in meaning.error.what
    assert "secret" not in str(meaning.error)


async def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        proxied = f"http://name:secret@127.0.0.1:{nobody.getsockname()[1]}"
        meaning = await asked(monkeypatch, "https://api.openai.invalid/v1", HTTPS_PROXY=proxied)
    assert str(meaning.error) == (
        "The proxy for openai/test-model cannot be reached: check HTTPS_PROXY and the network"
    )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_a_server_with_a_certificate_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2")
    named = ("-subj", "/CN=other.example", "-addext", "subjectAltName=IP:127.0.0.1")
    await asyncio.to_thread(
        subprocess.run, ["openssl", "req", "-x509", *made, *named], check=True, capture_output=True
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    page = answers(
        "HTTP/1.1 200 OK\nContent-Type: text/html\nConnection: close\n\n<html><title>Wi-Fi</title>"
    )
    async with await asyncio.start_server(page, "127.0.0.1", 0, ssl=context) as server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        meaning = await asked(monkeypatch, address)
        assert "is not trusted (self-signed certificate)" in meaning.error.what
        assert "SSL_CERT_FILE" in meaning.error.remedy
        direct_client.client.cache_clear()
        meaning = await asked(monkeypatch, address, SSL_CERT_FILE=str(certificate))
        assert "A web page answered instead of the provider of openai/test-model (Wi-Fi" in meaning.error.what
        direct_client.client.cache_clear()
        meaning = await asked(
            monkeypatch, address.replace("127.0.0.1", "localhost"), SSL_CERT_FILE=str(certificate)
        )
        assert "belongs to another server" in meaning.error.what


async def test_a_captive_portal_behind_a_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    page = answers(
        "HTTP/1.1 200 OK\nContent-Type: text/html\nConnection: close\n\n<html>\n\n<h1>Hotel</h1>\n\n"
    )
    async with await asyncio.start_server(page, "127.0.0.1", 0) as portal:
        there = f"http://127.0.0.1:{portal.sockets[0].getsockname()[1]}/login"
        sent_on = answers(f"HTTP/1.1 302 Found\nLocation: {there}\nContent-Length: 0\nConnection: close\n\n")
        async with await asyncio.start_server(sent_on, "127.0.0.1", 0) as server:
            meaning = await asked(monkeypatch, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert (
        "A web page answered instead of the provider of openai/test-model (Hotel, status 200)"
        in meaning.error.what
    )
    assert SIGN_IN in meaning.error.remedy


async def test_plain_http_where_tls_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        meaning = await asked(monkeypatch, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert "does not support TLS" in meaning.error.what

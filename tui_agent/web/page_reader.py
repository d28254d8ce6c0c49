"""The child process that fetches pages: a slow server or conversion blocks only this process.

Requests have no cookies or credentials. A name is resolved once, and the connection uses the checked
address, so a name server cannot change it later.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

import httpcore
import httpx

from tui_agent import __version__
from tui_agent.errors import TuiAgentError
from tui_agent.processes.serve import Announce, Handler, Send, run
from tui_agent.web.addresses import is_public

#: Bytes of a decompressed page, characters of its text, redirects.
MOST_BYTES, MOST_TEXT, MOST_REDIRECTS = 1 << 20, 1 << 20, 5
WAIT = 15.0
_NOT_TEXT = ["script", "style", "noscript", "template", "svg", "head", "iframe", "form", "nav"]
_READABLE = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|toml|javascript|x-sh)|")
#: Characters of a path and of a query that need no percent-encoding, or have it.
_AS_IT_IS = "%/:?@!$&'()*+,;=[]"
_REMEDY = "give an address such as https://docs.python.org/3/"
_BLANK = re.compile(r"\n{3,}")
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", re.IGNORECASE)

#: Returns a host's addresses. Raises OSError, and `TuiAgentError` if one is not public.
Resolve = Callable[[str, int], Awaitable[list[str]]]


async def public_addresses(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(address[4][0]) for address in found))
    if not all(is_public(address) for address in addresses):
        raise TuiAgentError(f"{host} has an address that is not public", "only public pages can be read")
    return addresses


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._network = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        error: Exception = httpcore.ConnectError("no address")
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as failed:
            raise httpcore.ConnectError("its name has no address") from failed
        for address in addresses:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                error = failed
        raise error


async def read_page(url: str, resolve: Resolve = public_addresses) -> dict[str, Any]:
    """Returns a page's address after redirects on the same host, its text as Markdown, and whether it was
    cut.

    Raises `TuiAgentError`.
    """
    tls = ssl.create_default_context()
    async with httpcore.AsyncConnectionPool(
        ssl_context=tls, network_backend=_CheckedNetwork(resolve)
    ) as pool:
        url = _ascii(url)
        for _ in range(MOST_REDIRECTS + 1):
            host = _host(url)
            try:
                answer = await _answer(pool, url)
            except (httpcore.TimeoutException, TimeoutError):
                raise TuiAgentError(f"{host} did not answer within {WAIT:g} s", "try again later") from None
            except (httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError, ssl.SSLError) as error:
                why = str(error) or type(error).__name__
                raise TuiAgentError(f"{host} cannot be read: {why}", "check the address") from None
            if isinstance(answer, dict):
                return answer
            url, before = answer, url
            if _origin(url) != _origin(before):
                raise TuiAgentError(f"{before} is at {url} now", "read that address")
    raise TuiAgentError(f"{url} was redirected more than {MOST_REDIRECTS} times", "check the address")


async def _answer(pool: httpcore.AsyncConnectionPool, url: str) -> dict[str, Any] | str:
    headers = {
        "host": urlsplit(url).netloc,
        "user-agent": f"tui-agent/{__version__}",
        "accept": "text/markdown, text/html, text/*;q=0.9, */*;q=0.1",
        "accept-encoding": "gzip",
    }
    waits = dict.fromkeys(("connect", "read", "write", "pool"), WAIT)
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    async with pool.stream("GET", url, headers=sent, extensions={"timeout": waits}) as raw:
        stream = _Stream(raw.aiter_stream())
        response = httpx.Response(raw.status, headers=raw.headers, stream=stream)
        if response.has_redirect_location:
            return _ascii(response.headers["location"], url)
        if not response.is_success:
            raise TuiAgentError(
                f"{_host(url)} answered with status {response.status_code}", "check the address"
            )
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not _READABLE.fullmatch(kind):
            raise TuiAgentError(f"{url} is not text ({kind[:80]})", "read a page of text")
        data = bytearray()
        async for piece in response.aiter_bytes():
            data += piece
            if len(data) > MOST_BYTES:
                break
    cut = len(data) > MOST_BYTES
    charset, page = response.charset_encoding or "", bytes(data[:MOST_BYTES])
    if not charset and (named := _CHARSET.search(page, 0, 4096)):
        charset = named[1].decode()
    try:
        written = page.decode(charset or "utf-8", "replace")
    except LookupError:
        written = page.decode("utf-8", "replace")
    if "\0" in written:
        raise TuiAgentError(f"{url} is not text", "read a page of text")
    if "html" in kind or (not kind and written.lstrip()[:1] == "<"):
        title, written = as_markdown(written)
    else:
        title = ""
    return {"url": url, "title": title, "text": written[:MOST_TEXT], "cut": cut or len(written) > MOST_TEXT}


class _Stream(httpx.AsyncByteStream):
    def __init__(self, pieces: Any) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> Any:
        async for piece in self._pieces:
            yield piece


def as_markdown(html: str) -> tuple[str, str]:
    """Returns title and text. Raises `TuiAgentError`."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    try:
        page = BeautifulSoup(html, "html.parser")
        title = page.title.get_text(" ", strip=True) if page.title else ""
        for element in page(_NOT_TEXT):
            element.decompose()
        converter = MarkdownConverter(heading_style="ATX", strip=["img"])
        text = converter.convert_soup(page.find("main") or page.body or page)
    except (RecursionError, AssertionError, ValueError):
        raise TuiAgentError("This page has no text", "read another page") from None
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return title[:300], _BLANK.sub("\n\n", lines).strip()


def _ascii(written: str, base: str = "") -> str:
    """As in a request. Raises `TuiAgentError` for an invalid address."""
    try:
        parts = urlsplit(urljoin(base, written))
        netloc = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:
        raise TuiAgentError(f"{written[:200]} is not an address", _REMEDY) from None
    path, query = (quote(part, safe=_AS_IT_IS) for part in (parts.path, parts.query))
    return parts._replace(netloc=netloc, path=path, query=query).geturl()


def _host(url: str) -> str:
    """Raises `TuiAgentError` for an invalid address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise TuiAgentError(f"{url[:200]} is not an address", _REMEDY) from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise TuiAgentError(f"{url[:200]} is not an address of a page", _REMEDY)
    return host


def _origin(url: str) -> tuple[str, str, int | None]:
    host, parts = _host(url), urlsplit(url)
    return parts.scheme, host, parts.port


async def read(params: dict[str, Any], send: Send) -> dict[str, Any]:
    return await read_page(str(params["url"]))


def build(announce: Announce) -> Mapping[str, Handler]:
    return {"read": read}


if __name__ == "__main__":
    run(build)

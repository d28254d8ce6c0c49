"""Explains connection failures: certificate, proxy, name, network or server."""

from __future__ import annotations

import errno
import os
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from tui_agent.errors import Unreachable
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.model.failures import Failure

_CONNECTION = {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError", "gaierror"}
_VERIFY = late(r"certificate verify failed:? *(.{3,120}?)(?: \(_ssl|[.\n]|$)")
_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN))
_LOOKED_UP = late(
    r"(?i)name or service not known|nodename nor servname|name resolution|getaddrinfo failed|no address associated"
)
#: A proxy's response to CONNECT: status and reason.
_STATUS = late(r"^(\d{3})\b *([\w -]{0,60})")
_UNUSABLE = late(r"(?i)unknown scheme for proxy|using socks proxy")

#: Description and remedy.
Sentence = tuple[str, str]


def connecting(failure: Failure, model: str, where: str) -> Unreachable | None:
    """The cause of a failed connection to the server of `model`; None for other failures. `where` names the
    source of its address, as the end of a sentence."""
    for kind in (_proxy, _certificate, _name, _route):
        if sentence := kind(failure, model, where):
            return Unreachable(*sentence)
    return None


def is_connection(failure: Failure) -> bool:
    return bool(failure.names & _CONNECTION)


def _proxy(failure: Failure, model: str, where: str) -> Sentence | None:
    if _UNUSABLE.search(failure.raised):
        return (
            f"The proxy for {model} cannot be used",
            "set HTTPS_PROXY to the address of an HTTP proxy",
        )
    answer = next(
        (_STATUS.match(str(error)) for error in failure.chain if type(error).__name__ == "ProxyError"), None
    )
    status, said = (whole_number(answer[1]), answer[0].strip()) if answer else (0, "")
    match status:
        case 407:
            return (
                f"The proxy for {model} requires a user name and a password (status 407)",
                "set HTTPS_PROXY to http://name:password@host:port",
            )
        case 511 | 301 | 302 | 303 | 307 | 308 | 401:
            return (
                f"The network requires a sign-in before {model} can be reached (status {status})",
                "open any page in a browser and sign in to the network, then send the request again",
            )
        case 0:
            pass
        case _ if status < 500:
            return (
                f"The proxy does not allow a connection to the server of {model} ({said})",
                "ask the operator of the proxy to allow the address, or add its host to NO_PROXY",
            )
        case _:
            return (
                f"The proxy does not reach the server of {model} ({said})",
                f"check the proxy and the network{where}",
            )
    if "ProxyError" in failure.names or ("ConnectError" in failure.names and _tls_words(failure) is None):
        # The environment variable of the proxy in use, or ""
        url = next(filter(None, (_url_of(error) for error in failure.chain)), "")
        parts = urlsplit(url)
        if not parts.hostname or proxy_bypass(parts.hostname):
            variable = ""
        else:
            names = (f"{parts.scheme}_proxy", "all_proxy")
            variable = next(
                (spelt for name in names for spelt in (name.upper(), name) if os.environ.get(spelt)), ""
            )
        if variable or "ProxyError" in failure.names:
            named = variable or "HTTPS_PROXY"
            return f"The proxy for {model} cannot be reached", f"check {named} and the network"
    return None


def _certificate(failure: Failure, model: str, where: str) -> Sentence | None:
    words = _tls_words(failure)
    if words is None:
        return None
    found = _VERIFY.search(words)
    if found is None:
        return (
            f"The server of {model} does not support TLS correctly",
            f"check the address{where}, whether it begins with http:// or https://, and the proxy",
        )
    reason = found[1].strip()
    if "expired" in reason or "not yet valid" in reason:
        return (
            f"The certificate of the server of {model} is not valid at this time ({reason})",
            "check the clock of this machine, and sign in to the network if required",
        )
    if "mismatch" in reason or "doesn't match" in reason:
        return (
            f"The certificate at the address of {model} belongs to another server",
            f"check the address{where}, and sign in to the network if required",
        )
    return (
        f"The certificate of the server of {model} is not trusted ({reason}), "
        "as one of a company's proxy that inspects TLS is not",
        "set SSL_CERT_FILE to a file with the CA certificate of that proxy or server",
    )


def _name(failure: Failure, model: str, where: str) -> Sentence | None:
    if "gaierror" not in failure.names and not (is_connection(failure) and _LOOKED_UP.search(failure.raised)):
        return None
    return f"The name of the server of {model} cannot be looked up", f"check the network connection{where}"


def _route(failure: Failure, model: str, where: str) -> Sentence | None:
    if not any(isinstance(error, OSError) and error.errno in _NO_ROUTE for error in failure.chain):
        return None
    return (
        f"This machine has no network route to the server of {model}",
        f"check the network connection and the VPN{where}",
    )


def _tls_words(failure: Failure) -> str | None:
    errors = (error for error in failure.chain if "SSLError" in _names(error) or "[SSL" in str(error))
    words = "\n".join(map(str, errors))
    return words or None


def _names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _url_of(error: BaseException) -> str:
    """The request address in an exception of httpx or an SDK, or ""."""
    try:
        return str(getattr(getattr(error, "request", None), "url", ""))
    except RuntimeError:  # httpx raises it for an exception without a request.
        return ""

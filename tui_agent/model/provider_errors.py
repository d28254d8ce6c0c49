"""Translates a failed request into an error message and a retry decision, explains connection failures
(certificate, proxy, name, network or server), and retries with a visible countdown.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from tui_agent.errors import ModelError, RequestRejected, TimedOut, Unreachable
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.model.client import Chunk, EndChunk, RetryChunk
from tui_agent.model.event_stream import BrokenStream, Wire
from tui_agent.model.failures import Failure, FailureKind
from tui_agent.model.login.services import needed
from tui_agent.model.model_table import provider_of, suggestion, today
from tui_agent.model.request_errors import over_account, refusal_of

_CONNECTION = {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError", "gaierror"}
_VERIFY = late(r"certificate verify failed:? *(.{3,120}?)(?: \(_ssl|[.\n]|$)")
_NO_ROUTE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN))
_LOOKED_UP = late(
    r"(?i)name or service not known|nodename nor servname|name resolution|getaddrinfo failed|no address associated"
)
_STATUS = late(r"^(\d{3})\b *([\w -]{0,60})")
_UNUSABLE = late(r"(?i)unknown scheme for proxy|using socks proxy")

Sentence = tuple[str, str]


def connecting(failure: Failure, model: str, where: str) -> Unreachable | None:
    """The cause of a failed connection; `None` for other failures. `where` names the source of the address,
    as the end of a sentence.
    """
    if sentence := _proxy(failure, model, where) or _certificate(failure, model, where):
        return Unreachable(*sentence)
    if "gaierror" in failure.names or (is_connection(failure) and _LOOKED_UP.search(failure.raised)):
        return Unreachable(
            f"The name of the server of {model} cannot be looked up", f"check the network connection{where}"
        )
    if any(isinstance(error, OSError) and error.errno in _NO_ROUTE for error in failure.chain):
        return Unreachable(
            f"This machine has no network route to the server of {model}",
            f"check the network connection and the VPN{where}",
        )
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
                f"The proxy cannot reach the server of {model} ({said})",
                f"check the proxy and the network{where}",
            )
    if "ProxyError" in failure.names or ("ConnectError" in failure.names and _tls_words(failure) is None):
        # The proxy's variable, or "".
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


def _tls_words(failure: Failure) -> str | None:
    errors = (
        error
        for error in failure.chain
        if "SSLError" in {cls.__name__ for cls in type(error).__mro__} or "[SSL" in str(error)
    )
    words = "\n".join(map(str, errors))
    return words or None


def _url_of(error: BaseException) -> str:
    try:
        return str(getattr(getattr(error, "request", None), "url", ""))
    except RuntimeError:
        return ""


_TIMEOUT = {"TimeoutError", "TimeoutException", "Timeout", "APITimeoutError"}


@dataclass(frozen=True)
class Meaning:
    """`seconds` is the delay requested by the provider. `connection`: the connection failed."""

    error: ModelError
    again: bool = False
    seconds: float | None = None
    connection: bool = False


def explain(error: BaseException, model: str, wire: Wire | None = None) -> Meaning:
    wire = wire or Wire()
    failure = Failure(error, wire.error)
    if wire.error is None:
        if (kept_out := connecting(failure, model, _address_hint(model))) is not None and not wire.accepted:
            return Meaning(kept_out, connection=True)
        if failure.names & _TIMEOUT:
            return Meaning(timed_out(model, more=wire.accepted))
        if wire.broken or (wire.accepted and is_connection(failure)):
            how = wire.broken or "ended the answer"
            nothing_came = Unreachable(
                f"The server of {model} {how} before any text", "send the request again"
            )
            return Meaning(nothing_came, connection=True)
        if is_connection(failure):
            unreachable = Unreachable(
                f"The server of {model} cannot be reached",
                f"check that it runs and the network{_address_hint(model)}",
            )
            return Meaning(unreachable, connection=True)
    kind = refusal_of(failure)
    if kind is not None:
        return _refused(kind, model, failure)
    if not failure.status:
        what = f"The answer of {model} is invalid ({failure.detail})"
        return Meaning(ModelError(what, "send the request again, or see `tui-agent doctor`"))
    if "LLM Provider NOT provided" in failure.text:
        what = f"The provider of {model} is unknown"
        example = suggestion("openai", today()) or "openai/NAME"
        return Meaning(RequestRejected(what, f"write the model as provider/name, for example {example}"))
    what = f"The provider of {model} rejected the request ({failure.detail})"
    return Meaning(RequestRejected(what, "choose another model or protocol, or see `tui-agent doctor`"))


def timed_out(model: str, seconds: float | None = None, more: bool = False) -> TimedOut:
    within = f" within {seconds:g} s" if seconds else " in time"
    nothing = "nothing more" if more else "nothing"
    return TimedOut(f"{model} sent {nothing}{within}", "send the request again, or raise request_timeout")


def broke_off(model: str, wire: Wire) -> str:
    """Why the stream ended, without a full stop."""
    if wire.error is not None:
        said = Failure(BrokenStream(""), wire.error).detail
        return f"The provider of {model} ended the answer with an error ({said})"
    broken = wire.broken or "broke the connection"
    return f"The server of {model} {broken} during the answer"


def _refused(kind: FailureKind, model: str, failure: Failure) -> Meaning:
    seconds = failure.seconds if kind.again != "no" else None
    again = kind.again == "yes" or (kind.again == "if asked" and seconds is not None)
    limit, requested, span = over_account(failure) or (0, 0, "")
    sizes = {"limit": f"{limit:,}", "requested": f"{requested:,}", "span": span}
    service = needed(model, os.environ)
    if service is not None and service.only_login:
        key_names = f"the login (`tui-agent login {service.name}`)"
    else:
        provider = provider_of(model)
        key_names = (
            " or ".join(provider.keys) if provider and provider.keys else "the provider's API key variable"
        )
    facts = {
        "model": model,
        "said": failure.detail,
        "page": failure.page,
        "status": failure.status,
        "keys": key_names,
        "where": _address_hint(model),
        **sizes,
    }
    error = kind.error(kind.what.format_map(facts), kind.remedy.format_map(facts))
    return Meaning(error, again=again, seconds=seconds)


def _address_hint(model: str) -> str:
    provider = provider_of(model)
    return f", and {provider.address} if it is set" if provider and provider.address else ""


FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 30.0
#: Longer delays are reported as errors.
LONGEST_ASKED_SECONDS = 300.0
#: Minimum delay, so that retries last and a partial reply can be kept.
SHORTEST_WAIT_SECONDS = 1.0

Attempt = Callable[[], AsyncGenerator[Chunk, None]]
Sleep = Callable[[float], Awaitable[None]]


class AttemptFailed(Exception):
    """`end` ends the partial reply if there is no retry."""

    def __init__(self, meaning: Meaning, end: EndChunk | None = None) -> None:
        super().__init__(str(meaning.error))
        self.meaning = meaning
        self.end = end


async def with_retries(
    attempt: Attempt, retries: int, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[Chunk, None]:
    """Yields the chunks of the first successful attempt, preceded by a `RetryChunk` per second of delay,
    which voids the failed attempt's chunks. The last attempt's partial reply is kept and ends as cut;
    without one, its error is raised.
    """
    for retry in range(1, retries + 2):
        try:
            async with aclosing(attempt()) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        except AttemptFailed as refusal:
            failed = refusal
        seconds = wait_seconds(retry, failed.meaning)
        if retry > retries or seconds > LONGEST_ASKED_SECONDS:
            if failed.end is None:
                error = failed.meaning.error
                if retry <= retries:
                    raise type(error)(f"{error.what}, and asks to wait {_span(seconds)}", error.remedy)
                if not retries:
                    raise error
                times = "1 retry" if retries == 1 else f"{retries} retries"
                raise type(error)(f"{error.what}, even after {times}", error.remedy)
            yield failed.end
            return
        while seconds > 0:
            yield RetryChunk(attempt=retry + 1, seconds=seconds, why=failed.meaning.error.what)
            step = seconds % 1 or 1.0
            await sleep(step)
            seconds -= step


def wait_seconds(retry: int, meaning: Meaning) -> float:
    if meaning.seconds is not None:
        return max(SHORTEST_WAIT_SECONDS, meaning.seconds)
    return min(FIRST_WAIT_SECONDS * 2 ** (retry - 1), LONGEST_WAIT_SECONDS)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (hours, "h"), (minutes, "min"), (rest, "s")
    return " ".join([f"{number} {unit}" for number, unit in parts if number][:2]) or "0 s"

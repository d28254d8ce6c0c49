"""Translates a failed request into an error message and a retry decision."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tui_agent.errors import ModelError, RequestRejected, TimedOut, Unreachable
from tui_agent.model.connection_errors import connecting, is_connection
from tui_agent.model.context_length import over_account
from tui_agent.model.event_stream import BrokenStream, Wire
from tui_agent.model.failure_kind import FailureKind
from tui_agent.model.failures import SAID_CHARACTERS, Failure
from tui_agent.model.login.services import needed
from tui_agent.model.providers import provider_of
from tui_agent.model.request_errors import refusal_of
from tui_agent.model.suggestions import suggestion

__all__ = ["SAID_CHARACTERS", "Meaning", "broke_off", "explain", "timed_out"]
_TIMEOUT = {"TimeoutError", "TimeoutException", "Timeout", "APITimeoutError"}


@dataclass(frozen=True)
class Meaning:
    """The error, whether a retry may succeed, and the delay in seconds requested by the provider.

    `connection`: the connection failed.
    """

    error: ModelError
    again: bool = False
    seconds: float | None = None
    connection: bool = False


def explain(error: BaseException, model: str, wire: Wire | None = None) -> Meaning:
    """Explains the failure of a request for `model`; `wire` is its recorded progress."""
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
                f"The server of {model} {how} before its first word", "send the request again"
            )
            return Meaning(nothing_came, connection=True)
        if is_connection(failure):
            unreachable = Unreachable(
                f"The server of {model} cannot be reached",
                f"check that it runs and the network{_address_hint(model)}",
            )
            return Meaning(unreachable, connection=True)
    kind = refusal_of(failure)
    return Meaning(_other(model, failure)) if kind is None else _refused(kind, model, failure)


def timed_out(model: str, seconds: float | None = None, more: bool = False) -> TimedOut:
    within = f" within {seconds:g} s" if seconds else " in time"
    nothing = "nothing more" if more else "nothing"
    return TimedOut(f"{model} sent {nothing}{within}", "send the request again, or raise request_timeout")


def broke_off(model: str, wire: Wire) -> str:
    """The reason of a premature end, as a sentence without its full stop."""
    if wire.error is not None:
        said = Failure(BrokenStream(""), wire.error).said
        return f"The provider of {model} ended the answer with an error ({said})"
    broken = wire.broken or "broke the connection"
    return f"The server of {model} {broken} during the answer"


def _refused(kind: FailureKind, model: str, failure: Failure) -> Meaning:
    seconds = failure.seconds if kind.again != "no" else None
    again = kind.again == "yes" or (kind.again == "if asked" and seconds is not None)
    limit, requested, span = over_account(failure) or (0, 0, "")
    sizes = {"limit": f"{limit:,}", "requested": f"{requested:,}", "span": span}
    facts = {
        "model": model,
        "said": failure.said,
        "page": failure.page,
        "status": failure.status,
        "keys": _key_names(model),
        "where": _address_hint(model),
        **sizes,
    }
    error = kind.error(kind.what.format_map(facts), kind.remedy.format_map(facts))
    return Meaning(error, again=again, seconds=seconds)


def _other(model: str, failure: Failure) -> ModelError:
    """An unclassified failure: with a status the request was rejected, without one the response was
    unreadable."""
    if not failure.status:
        what = f"The answer of {model} is invalid ({failure.said})"
        return ModelError(what, "send the request again, or see `tui-agent doctor`")
    if "LLM Provider NOT provided" in failure.text:
        what = f"The provider of {model} is unknown"
        example = suggestion("openai") or "openai/NAME"
        return RequestRejected(what, f"write the model as provider/name, for example {example}")
    what = f"The provider of {model} rejected the request ({failure.said})"
    return RequestRejected(what, "choose another model or protocol, or see `tui-agent doctor`")


def _address_hint(model: str) -> str:
    provider = provider_of(model)
    return f", and {provider.address} if it is set" if provider and provider.address else ""


def _key_names(model: str) -> str:
    service = needed(model, os.environ)
    if service is not None and service.only_login:
        return f"the login (`tui-agent login {service.name}`)"
    provider = provider_of(model)
    return " or ".join(provider.keys) if provider and provider.keys else "the provider's API key variable"

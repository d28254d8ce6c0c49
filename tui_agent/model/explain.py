"""What a failure inside litellm means, in one sentence for a person.

litellm wraps what providers and HTTP libraries raise, not always in the class that one would expect; so the whole
chain of causes is looked at, by the names of the classes, status codes and words. No key and no address of one
is ever repeated: what the provider said is shortened and masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    ModelError,
    RateLimited,
    Refused,
    RequestRejected,
    TimedOut,
    Unreachable,
)
from tui_agent.model.masking import masked
from tui_agent.model.providers import provider_of

SAID_CHARACTERS = 240
_CONNECTION = {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError", "gaierror"}
_TIMEOUT = {"TimeoutError", "TimeoutException", "Timeout", "APITimeoutError"}
#: The module of the errors that litellm raises in place of others.
_LITELLM = "litellm.exceptions"
#: The wordings of OpenAI, Anthropic, Gemini, Mistral, xAI, Cohere, Together, Bedrock, vLLM, llama.cpp, LM Studio.
_TOO_LONG = re.compile(
    r"(?i)context[_ ](?:length|window|size|limit)|maximum (?:context|prompt)|(?:prompt|input) is too long"
    r"|too many tokens|input token count|reduce the length|request too large|tokens \+ max_new_tokens"
)
_DECLINED = re.compile(
    r"(?i)content[_ ](?:filter|policy|management)|safety system|flagged|usage policies|responsible ai|moderation"
)
_NO_KEY = re.compile(
    r"(?i)missing .{0,40}(?:api[_ ]?key|credentials)|api_key .{0,60}must be set|no api[_ ]?key"
)
_WRONG_KEY = re.compile(
    r"(?i)(?:invalid|incorrect|expired).{0,20}api[_ ]?key|api[_ ]?key.{0,20}(?:invalid|not valid|expired)"
)
_NO_CREDIT = re.compile(
    r"(?i)insufficient[_ ](?:quota|balance)|exceeded your current quota|credit balance|billing"
)
_PREFIXES = re.compile(r"^(?:litellm\.)?(?:\w+(?:Error|Exception)(?:: | - ))+")


@dataclass(frozen=True)
class Failure:
    """An exception with everything that caused it."""

    error: BaseException

    @cached_property
    def chain(self) -> tuple[BaseException, ...]:
        return tuple(_causes(self.error))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(cls.__name__ for error in self.chain for cls in type(error).__mro__)

    @cached_property
    def status(self) -> int:
        """The HTTP status, 0 where none came: for what never got an answer, litellm makes up a 500."""
        own = [_status(error) for error in self.chain if type(error).__module__ != _LITELLM]
        made_up = [status for error in self.chain if (status := _status(error)) != 500]
        return next((status for status in (*reversed(own), *made_up) if status), 0)

    @cached_property
    def text(self) -> str:
        return "\n".join(str(error) for error in self.chain)

    @cached_property
    def said(self) -> str:
        """What the provider said, on one line, shortened, without secrets."""
        words = next((said for error in self.chain if (said := _message(getattr(error, "body", None)))), "")
        words = words or _PREFIXES.sub("", str(getattr(self.error, "message", self.error)))
        return _one_line(masked(words))

    @cached_property
    def retry_after(self) -> float | None:
        """Seconds that the provider asked us to wait."""
        for error in self.chain:
            for headers in _headers(error):
                if (seconds := _seconds(headers)) is not None:
                    return seconds
        return None


@dataclass(frozen=True)
class Meaning:
    """What to tell the person, and whether asking again may help: after how many seconds, if somebody said."""

    error: ModelError
    again: bool = False
    seconds: float | None = None


def explain(error: BaseException, model: str) -> Meaning:
    """The error of ours that says what happened to a request for `model`."""
    failure = Failure(error)
    if failure.names & _TIMEOUT:
        return Meaning(timed_out(model))
    if failure.names & _CONNECTION:
        return Meaning(_unreachable(model))
    if _NO_KEY.search(failure.text):
        return Meaning(
            BadKey(f"There is no key for {model}", f"set {_key_names(model)} and start tui-agent again")
        )
    if failure.status == 413 or (failure.status in (400, 422, 429, 500) and _TOO_LONG.search(failure.text)):
        return Meaning(_too_long(model, failure))
    if "ContentPolicyViolationError" in failure.names or (
        failure.status in (400, 403) and _DECLINED.search(failure.text)
    ):
        return Meaning(_declined(model, failure))
    return _by_status(model, failure)


def _by_status(model: str, failure: Failure) -> Meaning:
    status, said = failure.status, failure.said
    if status == 401 or (status in (400, 403) and (status == 403 or _WRONG_KEY.search(failure.text))):
        what = f"The provider refused the key for {model} (status {status})"
        return Meaning(BadKey(what, f"check {_key_names(model)}"))
    if status == 402 or _NO_CREDIT.search(failure.text):
        what = f"The account has no credit left for {model} ({said})"
        return Meaning(RateLimited(what, "add credit at the provider, or choose another model"))
    if status == 429:
        what = f"The provider's rate limit for {model} is reached ({said})"
        remedy = "wait a little and send the request again, or choose another model"
        return Meaning(RateLimited(what, remedy), again=True, seconds=failure.retry_after)
    if status >= 500:
        what = f"The provider of {model} has a fault (status {status}, {said})"
        remedy = "send the request again later, or choose another model"
        return Meaning(Unreachable(what, remedy), again=True, seconds=failure.retry_after)
    return Meaning(_rejected(model, failure))


def timed_out(model: str, seconds: float | None = None) -> TimedOut:
    within = f" within {seconds:g} s" if seconds else " in time"
    return TimedOut(f"{model} sent nothing{within}", "send the request again, or raise request_timeout")


def _unreachable(model: str) -> Unreachable:
    provider = provider_of(model)
    where = f", and {provider.address} if it is set" if provider and provider.address else ""
    return Unreachable(
        f"The server of {model} cannot be reached", f"check that it runs and the network{where}"
    )


def _too_long(model: str, failure: Failure) -> ContextTooLong:
    what = f"The request is too long for {model} ({failure.said})"
    return ContextTooLong(what, "close files or start a new session, or choose a model with a larger window")


def _declined(model: str, failure: Failure) -> Refused:
    what = f"The provider of {model} refused the request because of its content ({failure.said})"
    return Refused(what, "change the request, or choose another model")


def _rejected(model: str, failure: Failure) -> ModelError:
    if "LLM Provider NOT provided" in failure.text:
        what = f"Nobody knows which provider {model} belongs to"
        return RequestRejected(what, "write the model as provider/name, for example openai/gpt-5")
    if failure.status == 404:
        what = f"The server does not know {model} ({failure.said})"
        return RequestRejected(what, "check the name of the model, and the address if you set one")
    what = f"The provider of {model} rejected the request ({failure.said})"
    return RequestRejected(what, "choose another model or protocol, or see `tui-agent doctor`")


def _key_names(model: str) -> str:
    provider = provider_of(model)
    return " or ".join(provider.keys) if provider and provider.keys else "the provider's API key variable"


def _status(error: BaseException) -> int:
    status = getattr(error, "status_code", 0)
    return status if isinstance(status, int) else 0


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        error = original if isinstance(original, BaseException) else error.__cause__ or error.__context__


def _headers(error: BaseException) -> Iterator[Any]:
    yield getattr(getattr(error, "response", None), "headers", None)
    yield getattr(error, "litellm_response_headers", None)
    yield getattr(error, "headers", None)


def _seconds(headers: Any) -> float | None:
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(headers.get("retry-after")))
    except (AttributeError, TypeError, ValueError):
        return None  # no headers, no such header, or a date, which servers of models do not send


def _message(body: object) -> str:
    match body:
        case {"message": str(words)} | {"error": {"message": str(words)}}:
            return words
    return ""


def _one_line(words: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split()).rstrip(".")
    return line if len(line) <= SAID_CHARACTERS else line[: SAID_CHARACTERS - 1] + "…"

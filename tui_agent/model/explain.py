"""What a failure inside litellm means, in one sentence for a person.

litellm wraps what providers and HTTP libraries raise, not always in the class that one would expect; so the whole
chain of causes is looked at, by the names of the classes, status codes and words. No key and no address of one
is ever repeated: what the provider said is shortened and masked.
"""

from __future__ import annotations

import json
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
from tui_agent.files.key_formats import masked
from tui_agent.model.event_stream import BrokenStream, Wire
from tui_agent.model.providers import provider_of
from tui_agent.model.server_error import ServerError, retry_after

SAID_CHARACTERS = 240
_TAGS = re.compile(r"(?is)<(?:script|style|head).*?</(?:script|style|head)>|<[^>]{0,400}>")
_CONNECTION = {"TransportError", "ClientConnectionError", "ClientPayloadError", "ConnectionError", "gaierror"}
_TIMEOUT = {"TimeoutError", "TimeoutException", "Timeout", "APITimeoutError"}
#: The module of the errors that litellm raises in place of others.
_LITELLM = "litellm.exceptions"
#: How servers say that a request is too long, and what litellm looks for: tests/model/test_too_long.py has them all.
_TOO_LONG = re.compile(
    r"""(?ix)
    context[ _](?:length|window|size|limit|overflow) | maximum[ ](?:context|prompt|input|model)[ ]l(?:ength|imit)
    | (?:prompt|inputs?)[ ](?:is[ ]|was[ ]|are[ ])?too[ ](?:long|big|large) | prompt:[ ]length
    | (?:prompt|input)[ ](?:exceeds|cannot[ ]exceed)[ ](?:the[ ])?max | prompt[ ]超长 | length[ ]limit[ ]exceeded
    | too[ ]many[ ](?:input[ ]|total[ ]|prompt[ ])?tokens | (?:input|prompt)[ ]token[ ]count
    | tokens?[ ](?:\d+[ ])?(?:exceeds?|exceed[ ]the|cannot[ ]exceed)[ ](?:the[ ])?(?:configured|model|maximum|total)
    | tokens[ ]\(\d+\)[ ]exceed | exceed(?:s|ed)?[ ](?:the[ ]|max[ ]|model[ ])*(?:message[ ])?tokens?[ ]limit
    | maximum[ ]number[ ]of[ ]tokens[ ]allowed | exceeds?[ ]max[ ]message[ ]tokens
    | `?inputs`?[ ]tokens[ ]\+[ ]`?max_new_tokens | `?inputs`?[ ]must[ ]have[ ]less[ ]than
    | input[ ](?:text[ ])?length[ ](?:should|exceeds|of)| expected[ ]maxLength: | string[ ]too[ ]long
    | (?:request|body|payload)[ ](?:body[ ]|payload[ ]|size[ ])*(?:is[ ])?(?:too[ ]large|exceeds)
    | tokens_limit_reached | reduce[ ]the[ ]length | instance[ ]type[ ]with[ ]more[ ]CPU[ ]capacity
    """
)
#: A limit on what goes through in some time: shorter requests do not help, a wait does.
_RATE = re.compile(r"(?i)rate[ _-]?limit|per (?:minute|min|hour|day|second)|quota|throttl|please wait")
#: A single request over such a limit: a wait does not help.
_OVER_ONE = re.compile(r"(?i)request too large")
#: Other things than the request are too long or too large.
_OTHER_TOO_LONG = re.compile(r"(?i)invalid '(?!(?:messages|input|prompt)\b)[^']*': string too long")
#: vLLM: no request is short enough for an answer as long as the window.
_ANSWER_TOO_LONG = re.compile(
    r"max(?:_completion)?_tokens'? is too large: (\d+)\. This model's maximum context length is (\d+)"
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
    """An exception with everything that caused it, and what the server itself said where that is known."""

    error: BaseException
    told: ServerError | None = None

    @cached_property
    def chain(self) -> tuple[BaseException, ...]:
        return tuple(_causes(self.error))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(cls.__name__ for error in self.chain for cls in type(error).__mro__)

    @cached_property
    def status(self) -> int:
        """The HTTP status, 0 where none came: for what never got an answer, litellm makes up a 500."""
        if self.told is not None:
            return self.told.status
        own = [_status(error) for error in self.chain if type(error).__module__ != _LITELLM]
        made_up = [status for error in self.chain if (status := _status(error)) != 500]
        return next((status for status in (*reversed(own), *made_up) if status), 0)

    @cached_property
    def text(self) -> str:
        """What was said of it, where that is known without what the server repeats of the request."""
        if self.told is None:
            return "\n".join(str(error) for error in self.chain)
        body = self.told.body
        words = _message(body) or json.dumps(body, ensure_ascii=False)
        return "\n".join((words, *_codes(body)))

    @cached_property
    def too_long(self) -> bool:
        """Whether a shorter request would be taken."""
        if self.status in (401, 402, 403, 404):
            return False
        if self.status == 413 or _OVER_ONE.search(self.text):
            return True
        answer = _ANSWER_TOO_LONG.search(self.text)
        if _OTHER_TOO_LONG.search(self.text) or (answer and int(answer[1]) >= int(answer[2])):
            return False
        if _RATE.search(self.text) and self.status in (0, 429, 500, 503):
            return False
        return "ContextWindowExceededError" in self.names or bool(_TOO_LONG.search(self.text))

    @cached_property
    def said(self) -> str:
        """What the provider said, on one line, shortened, without secrets."""
        bodies = [self.told.body] if self.told is not None else []
        bodies += [getattr(error, "body", None) for error in self.chain]
        words = next((said for body in bodies if (said := _message(body))), "")
        if self.told is not None and not words:
            return "it said nothing more"
        words = words or _PREFIXES.sub("", str(getattr(self.error, "message", self.error)))
        return _one_line(masked(words))

    @cached_property
    def retry_after(self) -> float | None:
        """Seconds that the provider asked us to wait."""
        if self.told is not None:
            return self.told.retry_after
        for error in self.chain:
            for headers in _headers(error):
                if (seconds := retry_after(headers)) is not None:
                    return seconds
        return None


@dataclass(frozen=True)
class Meaning:
    """What to tell the person, and whether asking again may help: after how many seconds, if somebody said.

    `connection` says that it was the connection that failed.
    """

    error: ModelError
    again: bool = False
    seconds: float | None = None
    connection: bool = False


def explain(error: BaseException, model: str, wire: Wire | None = None) -> Meaning:
    """The error of ours that says what happened to a request for `model`; `wire` is what was seen of it."""
    wire = wire or Wire()
    failure = Failure(error, wire.error)
    if wire.error is None:
        if failure.names & _TIMEOUT:
            return Meaning(timed_out(model, more=wire.accepted))
        if wire.broken or (wire.accepted and failure.names & _CONNECTION):
            return Meaning(_nothing_came(model, wire.broken), connection=True)
        if failure.names & _CONNECTION:
            return Meaning(_unreachable(model), connection=True)
    if _NO_KEY.search(failure.text):
        return Meaning(
            BadKey(f"There is no key for {model}", f"set {_key_names(model)} and start tui-agent again")
        )
    if failure.too_long:
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
        remedy = "wait a moment and send the request again, or choose another model"
        return Meaning(RateLimited(what, remedy), again=True, seconds=failure.retry_after)
    if status >= 500:
        what = f"The provider of {model} has a fault (status {status}, {said})"
        remedy = "send the request again later, or choose another model"
        return Meaning(Unreachable(what, remedy), again=True, seconds=failure.retry_after)
    if status:
        return Meaning(_rejected(model, failure))
    what = f"The answer of {model} could not be read ({said})"
    return Meaning(ModelError(what, "send the request again, or see `tui-agent doctor`"))


def timed_out(model: str, seconds: float | None = None, more: bool = False) -> TimedOut:
    within = f" within {seconds:g} s" if seconds else " in time"
    nothing = "nothing more" if more else "nothing"
    return TimedOut(f"{model} sent {nothing}{within}", "send the request again, or raise request_timeout")


def broke_off(model: str, wire: Wire) -> str:
    """What ended an answer in its middle, as a sentence without its full stop."""
    if wire.error is not None:
        said = Failure(BrokenStream(""), wire.error).said
        return f"The provider of {model} ended the answer with an error ({said})"
    broken = wire.broken or "broke the connection"
    return f"The server of {model} {broken} in the middle of the answer"


def _nothing_came(model: str, broken: str) -> Unreachable:
    how = broken or "ended the answer"
    return Unreachable(f"The server of {model} {how} before its first word", "send the request again")


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
        what = f"The provider of {model} is not known"
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


def _message(body: object) -> str:
    """The words in an error's body, in the shapes that servers give it."""
    match body:
        case str(words):
            return _TAGS.sub(" ", words).strip()
        case {"error": {"message": str(words)}} if words.strip():
            return words
        case {"message": str(words)} | {"error": str(words)} | {"detail": str(words)} if words.strip():
            return words
        case {"detail": list(parts)} | {"errors": list(parts)} | {"message": list(parts)}:
            return "; ".join(filter(None, map(_part, parts)))
        case {"error": {} as inner} | {"detail": {} as inner} if inner:
            return _message(inner) or json.dumps(inner, ensure_ascii=False)
        case {"title": str(words)} | {"type": str(words)}:
            return words
    return ""


def _codes(body: object) -> Iterator[str]:
    """What a server calls its error, beside the words."""
    if isinstance(body, dict):
        yield from (str(body[key]) for key in ("code", "type", "error_code", "status") if key in body)
        yield from _codes(body.get("error"))


def _part(part: object) -> str:
    """One fault of several: what is wrong, and where (as FastAPI and pydantic say it)."""
    match part:
        case {"msg": str(words), "loc": [*place]}:
            return f"{'.'.join(map(str, place))}: {words}"
        case {"msg": str(words)}:
            return words
    return _message(part)


def _one_line(words: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split()).rstrip(".")
    return line if len(line) <= SAID_CHARACTERS else line[: SAID_CHARACTERS - 1] + "…"

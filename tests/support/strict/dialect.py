"""The part of a strict server that differs by provider: the request's rules, the stream, the errors."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from support.strict.counting import Counted, tokens_of
from support.strict.faults import FAULTS
from support.strict.frames import MEGABYTE, Frame
from support.strict.reply import Part, Refusal, Reply, Say, StrictError, Think, View
from support.strict.serving import StrictRequest

from tui_agent.model.rules import Rules, rules_of

HUGE_PIECES = 100
_SECRET = b"the key that this provider signs with"


def seal(*values: object) -> str:
    """A signature over values, as long as those of the providers are."""
    mac = hmac.new(_SECRET, "\0".join(map(str, values)).encode(), hashlib.sha256).digest()
    return base64.b64encode(b"\x12\x9c" + mac * 3).decode()


def token(*values: object, length: int = 24) -> str:
    """Letters and digits that name something, the same for the same values."""
    raw = hashlib.sha256("\0".join(map(str, values)).encode()).digest()
    return re.sub(r"[^A-Za-z0-9]", "", base64.b64encode(raw * 4).decode())[:length]


@dataclass(slots=True)
class Answering:
    """One request that is being answered: `number` counts the answers of the server."""

    request: StrictRequest
    model: str
    reply: Reply
    counted: Counted
    number: int
    #: Ids and names of what the reply holds, in its order, that the provider wants back.
    issued: list[Any] = field(default_factory=list)

    @property
    def body(self) -> dict[str, Any]:
        return self.request.body

    def misbehaves(self, word: str) -> bool:
        return word in self.reply.misbehave

    def id(self, given: str, fresh: str, repeated: str = "") -> str:
        """The id of a call or an item: the given one, a fresh one, or the wrong one that the test asked for."""
        if self.misbehaves("empty_ids"):
            return ""
        if self.misbehaves("repeated_ids"):
            return repeated or fresh[:4].ljust(len(fresh), "0")
        return given or fresh

    def pieces(self, text: str) -> Iterator[str]:
        """Text in words; a thinking text never ends if the test asked for that."""
        yield from re.findall(r"\s*\S+|\s+$", text)

    def thoughts(self, text: str) -> Iterator[str]:
        """Thinking in words, or without end."""
        yield from self.pieces(text)
        while self.misbehaves("endless_thinking"):
            yield " and so on"

    def arguments(self, text: str) -> Iterator[str]:
        """The JSON of arguments in pieces of a few characters."""
        for start in range(0, len(text), 12):
            yield text[start : start + 12]

    def secret(self, text: str) -> Iterator[str]:
        """A signature in pieces: one, none, or a hundred megabytes."""
        if self.misbehaves("huge_signature"):
            yield from (MEGABYTE for _ in range(HUGE_PIECES))
        elif not self.misbehaves("no_signature"):
            yield text

    @property
    def usage(self) -> Counted | None:
        """The count as it is reported; None if it is not."""
        if self.misbehaves("no_usage"):
            return None
        return self.counted.negative() if self.misbehaves("negative_usage") else self.counted


class Dialect:
    """The rules and the stream of one API."""

    #: The end of the path that it answers.
    path = ""
    models_path = "/models"
    comment = "keep-alive"
    #: The part of the loopback server's address before the path.
    prefix = ""

    def __init__(self, provider: str, key: str) -> None:
        self.provider, self.key = provider, key
        #: Requests that were accepted although they left out a thing that the model works better with.
        self.losses: list[str] = []

    def rules(self, model: str) -> Rules:
        return rules_of(self.provider, model)

    def takes(self, path: str) -> bool:
        return path == self.prefix + self.path

    def model_of(self, request: StrictRequest) -> str:
        return str(request.body.get("model", ""))

    def streams(self, request: StrictRequest) -> bool:
        return bool(request.body.get("stream"))

    def authorize(self, request: StrictRequest) -> None:
        """Raises the refusal of a missing or wrong key."""
        given = request.headers.get("authorization", "")
        if given != f"Bearer {self.key}":
            self.raise_fault("wrong_key")

    def check(self, request: StrictRequest) -> None:
        """Raises the refusal of a request that breaks a rule."""
        raise NotImplementedError

    def view(self, body: dict[str, Any]) -> View:
        raise NotImplementedError

    def count(self, request: StrictRequest) -> Counted:
        """Tokens of the prompt."""
        raise NotImplementedError

    def thinks(self, request: StrictRequest) -> bool:
        """Whether the model thinks in reply to this request."""
        return True

    def compose(self, answering: Answering) -> list[dict[str, Any]]:
        """The items of the reply with their secrets, which are remembered."""
        raise NotImplementedError

    def frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        raise NotImplementedError

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        """The reply to a request that does not stream."""
        raise NotImplementedError

    def forget(self, items: list[dict[str, Any]]) -> None:
        """The client hung up before the end of these items: it need not send them back."""

    def price(self, counted: Counted) -> None:
        """Sets the cost of a count, if the provider reports one."""

    def stream_headers(self) -> dict[str, str]:
        """Headers of a reply that streams."""
        return {}

    def unknown_frame(self) -> Frame:
        """An event that no client knows."""
        return Frame({"type": "mystery.event", "object": "mystery", "payload": {"a": [1]}}, "mystery.event")

    def error_frame(self) -> Frame:
        """An error in the middle of a stream."""
        return Frame(self.fault(StrictError("overloaded")).body)

    def listing(self, names: list[str]) -> dict[str, Any]:
        """The answer to a request for the models."""
        models = [
            {"id": name, "object": "model", "created": 1700000000, "owned_by": "system"} for name in names
        ]
        return {"object": "list", "data": models}

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def refusal(
        self,
        message: str,
        status: int = 400,
        kind: str = "invalid_request_error",
        code: Any = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Refusal:
        """The refusal with a message, in the provider's form."""
        return Refusal(status, self.error_body(status, message, kind, code, param), message, headers)

    def refuse(self, message: str, **details: Any) -> NoReturn:
        raise self.refusal(message, **details)

    def fault(self, error: StrictError, model: str = "the-model") -> Refusal:
        """The provider's error of a kind, whatever the request."""
        fault = FAULTS[self.provider][error.kind]
        message = error.message or fault.message.format(model=model, key="****")
        headers = {
            name: value.format(after=f"{error.retry_after:g}") for name, value in fault.headers.items()
        }
        return self.refusal(message, status=fault.status, kind=fault.kind, code=fault.code, headers=headers)

    def raise_fault(self, kind: Any, model: str = "the-model") -> NoReturn:
        raise self.fault(StrictError(kind), model)

    def lose(self, sentence: str) -> None:
        self.losses.append(sentence)


def output_of(parts: tuple[Part, ...]) -> tuple[int, int]:
    """Tokens of a reply, and those of its thinking among them."""
    thinking = sum(tokens_of(part.text) for part in parts if isinstance(part, Think))
    rest = sum(
        tokens_of(part.text) + (0 if isinstance(part, Say) else 8)
        for part in parts
        if not isinstance(part, Think)
    )
    return thinking + rest, thinking

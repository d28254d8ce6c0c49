"""The reply that a test decides on, the view of the request that it decides by, and the refusal of a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from support.strict.names import names

#: Words of `Reply.misbehave`.
MISBEHAVIOURS = names("""
    no_signature repeated_ids empty_ids out_of_order negative_usage no_usage unknown_event other_model
    endless_thinking huge_signature no_done error_in_stream comments tiny_chunks crlf
""")
ErrorKind = Literal[
    "rate_limit",
    "no_credit",
    "wrong_key",
    "overloaded",
    "too_long",
    "filtered",
    "not_found",
    "region",
    "org_verification",
    "bad_image",
]


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking; the server adds what proves it. A redacted block of Anthropic has no text."""

    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """Text for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function call; `arguments` is an object, or text that is sent as it is."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        """The arguments as JSON."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def value(self) -> Any:
        """The arguments as an object; text that is no JSON stays text."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


Part = Think | Say | Call


@dataclass(frozen=True, slots=True)
class StrictError:
    """An error of the provider in its own body, status and headers; `message` replaces the provider's words."""

    kind: ErrorKind
    message: str = ""
    retry_after: float = 2.0


@dataclass(frozen=True, slots=True)
class Reply:
    """Parts in the order in which they are streamed, or an error.

    `finish` is "", "length", "filtered", or a word of the provider. `usage` overrides fields of the count.
    `pause` is the time between two events, in seconds.
    """

    parts: tuple[Part, ...] = ()
    finish: str = ""
    usage: dict[str, float] | None = None
    error: StrictError | None = None
    misbehave: frozenset[str] = frozenset()
    pause: float = 0.0

    def __post_init__(self) -> None:
        unknown = set(self.misbehave) - MISBEHAVIOURS
        if unknown:
            raise ValueError(f"unknown misbehaviour: {sorted(unknown)}")


@dataclass(frozen=True, slots=True)
class View:
    """A request as a test wants to look at it, alike for all providers.

    `results` are the (name of the call, text) since the last message of the model, `turns` counts its messages,
    `tools` are the names of the offered functions, `schema` says whether a JSON schema was demanded.
    """

    text: str
    results: list[tuple[str, str]]
    turns: int
    tools: list[str]
    schema: bool
    images: int
    system: str
    body: dict[str, Any]


Brain = Callable[[View], Reply]


class Refusal(Exception):
    """A request that breaks a rule: the error as the provider sends it."""

    def __init__(self, status: int, body: Any, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.body, self.message, self.headers = status, body, message, headers or {}


def words(content: Any) -> str:
    """The text of any provider's content: a string, or parts with `text`."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for part in content if (text := words(part)))
    if isinstance(content, dict):
        return words(content.get("text") or content.get("content") or "")
    return ""

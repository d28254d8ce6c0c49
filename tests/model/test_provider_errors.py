"""What failures mean, by every wording and wrapping that providers and litellm use."""

from __future__ import annotations

import pytest

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    ModelError,
    Overloaded,
    RateLimited,
    Refused,
    RequestRejected,
    TimedOut,
    Unreachable,
)
from tui_agent.model.provider_errors import explain


class ProviderError(Exception):
    """As the HTTP libraries raise them: a status, a body, headers."""

    def __init__(
        self,
        words: str,
        status: int = 400,
        headers: dict[str, str] | None = None,
        body: dict[str, object] | None = None,
    ) -> None:
        super().__init__(words)
        self.status_code = status
        self.body = body
        self.headers = headers


def wrapped(cause: BaseException, status: int = 500) -> Exception:
    """As litellm raises them: in an error of its own with a status that it may have made up."""
    made_up = type("InternalServerError", (ProviderError,), {"__module__": "litellm.exceptions"})
    error = made_up(f"litellm.InternalServerError: OpenAIException - {cause}", status)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "words",
    [
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "Your request was rejected as a result of our safety system.",
        "Output blocked by content filtering policy",
        "Your prompt was flagged as potentially violating our usage policies.",
    ],
)
def test_refused_for_its_content(words: str) -> None:
    assert type(explain(ProviderError(words, 400), "openai/x").error) is Refused


@pytest.mark.parametrize(
    ("status", "words", "kind", "again"),
    [
        (401, "Unauthorized", BadKey, False),
        (403, "Forbidden", BadKey, False),
        (400, "API key not valid. Please pass a valid API key.", BadKey, False),
        (402, "Payment required", RateLimited, False),
        (429, "Rate limit reached for requests", RateLimited, True),
        (429, "You exceeded your current quota, please check your plan", RateLimited, False),
        (400, "Your credit balance is too low to access the API.", RateLimited, False),
        (413, "Payload Too Large", ContextTooLong, False),
        (500, "Internal error", Unreachable, True),
        (529, "Overloaded", Overloaded, True),
        (404, "model not found", RequestRejected, False),
        (422, "tools.0.function: field required", RequestRejected, False),
    ],
)
def test_by_status(status: int, words: str, kind: type[ModelError], again: bool) -> None:
    meaning = explain(wrapped(ProviderError(words, status), status), "openai/x")
    assert (type(meaning.error), meaning.again) == (kind, again)
    assert "openai/x" in meaning.error.what


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (ConnectionRefusedError(111, "refused"), Unreachable),
        (ConnectionResetError(104, "reset"), Unreachable),
        (TimeoutError(), TimedOut),
    ],
)
def test_a_status_that_litellm_made_up_does_not_hide_what_happened(
    cause: BaseException, kind: type[ModelError]
) -> None:
    meaning = explain(wrapped(cause), "openai/x")
    assert (type(meaning.error), meaning.again) == (kind, False)


def test_a_fault_inside_litellm_is_not_waited_for() -> None:
    meaning = explain(wrapped(KeyError("choices")), "openai/x")
    assert (type(meaning.error), meaning.again) == (ModelError, False)
    assert "is invalid" in meaning.error.what, "nobody has rejected anything"


@pytest.mark.parametrize(
    ("model", "words", "remedy"),
    [
        ("openai/gpt-5", "Missing credentials. Please pass an `api_key`", "OPENAI_API_KEY"),
        ("gpt-5", "Missing credentials. Please pass an `api_key`", "OPENAI_API_KEY"),
        ("anthropic/x", "Missing Anthropic API Key - A call is being made", "ANTHROPIC_API_KEY"),
        ("gemini/x", "Missing Gemini API key. Set the GEMINI_API_KEY", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("somebody/x", "no api key", "the provider's API key variable"),
    ],
)
def test_no_key_at_all(model: str, words: str, remedy: str) -> None:
    error = explain(wrapped(ValueError(words)), model).error
    assert type(error) is BadKey
    assert error.remedy == f"set {remedy} and start tui-agent again"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:09 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 9.0),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert explain(wrapped(ProviderError("slow down", 429, headers), 429), "openai/x").seconds == seconds


def test_the_providers_words_are_short_printable_and_masked() -> None:
    words = "bad\x1b[31m field\n" + "x" * 1000 + " sk-proj-abcdefghijklmnop1234"
    what = explain(ProviderError("…", 400, body={"message": words}), "openai/x").error.what
    assert "bad [31m field xxx" in what
    assert len(what) < 400
    short = explain(ProviderError("…", 400, body={"message": words[-40:]}), "openai/x").error.what
    assert "sk-proj" not in short

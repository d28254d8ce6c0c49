"""What litellm is asked directly: costs of known models by length, cache and hour, and the clients that it keeps."""

from __future__ import annotations

import socket
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import httpx
import pytest
from support.model_table import in_both

from tui_agent.model import model_table
from tui_agent.model.client import UsageChunk
from tui_agent.model.event_stream import Wire, watch
from tui_agent.model.http_clients import use_client_of_loop
from tui_agent.model.litellm_client import abilities, litellm
from tui_agent.model.model_listing import models_in
from tui_agent.model.model_table import KnownModel

#: Short and long requests, at the limits of price steps, with tokens from a cache and into one.
USAGES = [
    UsageChunk(1_000, 0),
    UsageChunk(1_000, 7, cached=900),
    UsageChunk(1_000, 7, written=900),
    UsageChunk(1_000, 7, cached=500, written=400, written_long=400),
    UsageChunk(1_000, 7, cached=500, written=400, written_long=150),
    UsageChunk(150_000, 9, cached=9_000),
    UsageChunk(200_000, 1),
    UsageChunk(205_000, 900, cached=5),
    UsageChunk(272_000, 10),
    UsageChunk(300_000, 999, cached=100_000, written=50_000, written_long=50_000),
]
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)


@cache
def priced() -> dict[str, KnownModel]:
    """The models that have a price, the same in the installed litellm, and that it finds by their full names."""
    same = ((name, ours) for name, (ours, theirs) in in_both().items() if ours == theirs)
    # litellm begins a login for any question about these
    same = ((name, ours) for name, ours in same if not name.startswith("github_copilot/"))
    return {name: known for name, known in same if known.prices and abilities(name).known}


def cost(known: KnownModel, usage: UsageChunk, now: datetime = MONDAY) -> float:
    """Dollars for a usage at a time; fails if the price is not known."""
    dollars = known.cost(usage, now.timestamp())
    assert dollars is not None
    return dollars


def at(now: datetime) -> AbstractContextManager[None]:
    """Sets the time of litellm's prices."""
    litellm()
    from litellm._internal_context import pinned_billing_time

    return pinned_billing_time(now)


def litellm_cost(name: str, usage: UsageChunk) -> float:
    from litellm.types.utils import CacheCreationTokenDetails, PromptTokensDetailsWrapper, Usage

    kept = CacheCreationTokenDetails(
        ephemeral_5m_input_tokens=usage.written - usage.written_long,
        ephemeral_1h_input_tokens=usage.written_long,
    )
    details = PromptTokensDetailsWrapper(
        cached_tokens=usage.cached,
        cache_creation_tokens=usage.written,
        cache_creation_token_details=kept if usage.written_long else None,
    )
    counted = Usage(
        prompt_tokens=usage.input,
        completion_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        prompt_tokens_details=details,
        cache_read_input_tokens=usage.cached,
        cache_creation_input_tokens=usage.written,
    )
    return sum(
        litellm().cost_per_token(
            model=name, prompt_tokens=usage.input, completion_tokens=usage.output, usage_object=counted
        )
    )


def test_costs_of_every_priced_model_are_litellms() -> None:
    models = priced()
    with at(MONDAY):
        theirs = {name: [litellm_cost(name, usage) for usage in USAGES] for name in models}
    ours = {name: [cost(known, usage) for usage in USAGES] for name, known in models.items()}
    wrong = {
        name: (ours[name], theirs[name]) for name in models if ours[name] != pytest.approx(theirs[name], 0.01)
    }
    assert wrong == {}
    assert len(models) > 500


def test_a_long_request_costs_more_a_token_if_its_model_has_steps() -> None:
    models = [known for known in priced().values() if len(known.prices) > 1 and known.prices[0].input]
    for known in models:
        above = known.prices[-1].above
        short, long = (cost(known, UsageChunk(tokens, 0)) / tokens for tokens in (above, above + 1))
        assert long > short * 1.2
    assert len(models) > 50


def test_tokens_that_a_cache_keeps_for_an_hour_cost_more_than_for_minutes() -> None:
    known = priced()["anthropic/claude-sonnet-4-5"]
    minutes = cost(known, UsageChunk(1_000_000, 0, written=1_000_000))
    hour = cost(known, UsageChunk(1_000_000, 0, written=1_000_000, written_long=1_000_000))
    assert hour / minutes == pytest.approx(2.0 / 1.25)


@pytest.mark.parametrize("day", range(7))
def test_hours_with_another_price_are_litellms(day: int) -> None:
    models = {name: known for name, known in priced().items() if known.off_peak}
    assert models
    usage = UsageChunk(1_000, 100, cached=100)
    found = set()
    for minutes in range(0, 24 * 60, 15):
        now = MONDAY + timedelta(days=day, minutes=minutes)
        for name, known in models.items():
            with at(now):
                assert cost(known, usage, now) == pytest.approx(litellm_cost(name, usage)), f"{name} at {now}"
        found.add(cost(models["deepseek/deepseek-v4-pro"], usage, now))
    assert len(found) == (2 if day < 5 else 1), "weekends have one price"


def test_a_model_without_a_price_costs_nothing_that_is_known() -> None:
    assert KnownModel(1_000, 0, "t").cost(USAGES[0]) is None


def test_a_usage_with_the_providers_own_cost_costs_that() -> None:
    route = model_table.route("openai/gpt-4o", {"OPENAI_API_KEY": "k"})
    assert route is not None
    assert model_table.cost(route, UsageChunk(1_000, 7, cost=0.5)) == 0.5
    assert model_table.cost(route, UsageChunk(1_000_000, 0)) == pytest.approx(2.5)


def test_more_cached_and_written_tokens_than_input_leave_no_fresh_ones() -> None:
    known = priced()["anthropic/claude-sonnet-4-5"]
    price = known.prices[0]
    expected = 100 * (price.cached + price.written)
    assert cost(known, UsageChunk(100, 0, cached=100, written=100)) == pytest.approx(expected)


def test_an_entry_of_a_list_gives_prices_window_and_abilities() -> None:
    entry = {
        "id": "maker/model",
        "context_length": 65_536,
        "pricing": {"prompt": "0.000001", "completion": "0.000002", "input_cache_read": "0.0000001"},
        "supported_parameters": ["tools", "structured_outputs"],
        "architecture": {"input_modalities": ["text", "image"]},
        "top_provider": {"max_completion_tokens": 8_192},
    }
    [found] = models_in("openrouter", [entry])
    name, known = found.name, found.known
    assert (name, known.window, known.output, known.can) == ("maker/model", 65_536, 8_192, "tsv")
    assert cost(known, UsageChunk(1_000, 100, cached=500)) == pytest.approx(0.0005 + 0.00005 + 0.0002)


@pytest.mark.parametrize(
    ("entry", "prices", "window"),
    [
        ({"id": "x"}, 0, 0),
        ({"id": "x", "pricing": None, "context_length": "many", "architecture": 3, "top_provider": []}, 0, 0),
        ({"id": "x", "supported_parameters": 3, "context_length": True}, 0, 0),
        ({"id": "x", "architecture": {"input_modalities": 3}}, 0, 0),
        ({"id": "x", "pricing": {"prompt": "-1", "completion": "-1"}, "context_length": -5}, 0, 0),
        ({"id": "x", "pricing": {"prompt": "nan", "completion": "1e-6"}}, 0, 0),
        ({"id": "x", "pricing": {"prompt": "0", "completion": "0"}, "context_length": 9}, 1, 9),
    ],
)
def test_what_a_list_says_badly_is_unknown(entry: dict[str, Any], prices: int, window: int) -> None:
    [found] = models_in("openrouter", [entry])
    assert (len(found.known.prices), found.known.window) == (prices, window)


@pytest.mark.parametrize("entry", [None, [], "x", {}, {"id": 3}])
def test_what_is_not_an_entry_is_passed_over(entry: object) -> None:
    assert models_in("openrouter", [entry]) == ()


async def sent(client: httpx.AsyncClient) -> bool:
    """Whether a request through this client is noted."""
    noted: list[bool] = []
    watch(Wire(on_sent=lambda: noted.append(True)))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(httpx.ConnectError):
            await client.post(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1", content=b"{}")
    return bool(noted)


async def test_each_client_of_litellm_is_watched() -> None:
    module = litellm()
    from litellm.llms.custom_httpx.http_handler import get_async_httpx_client

    assert await sent(get_async_httpx_client("anthropic").client)
    assert await sent(get_async_httpx_client("cohere", {"timeout": 3.0}).client)
    use_client_of_loop(module)
    assert module.aclient_session is not None and await sent(module.aclient_session)

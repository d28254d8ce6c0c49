"""The list of models on the screen: what is kept at once, then what providers answer; asked only while it is open."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.screens import Driven, on_screen
from support.sessions import ScriptedModel, reply
from support.strict import Reply, Say, StrictServer, View
from textual.widgets import OptionList

from tui_agent.model.child_model import ChildModel
from tui_agent.model.discovery import Suggestion
from tui_agent.model.local import LocalModels
from tui_agent.model.model_listing import (
    KEPT_SECONDS,
    MOST_MODELS,
    ListAnswer,
    ListedModel,
    Listing,
    cache_listing,
)
from tui_agent.model.model_table import KnownModel, Price, route, suggestion, today
from tui_agent.model.servers import ServerMemory
from tui_agent.session.models import Offer, Offers, offers_of
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.models import MOST, ModelChooser, about, fitting, offer_row, tokens

SMALL, LARGE = (80, 24), (160, 48)
DAY = date(2026, 11, 23)


class ListingModel(ScriptedModel):
    """Gives lists too, once the `gate` is open, and notes who was asked for them."""

    def __init__(self, *answers: ListAnswer) -> None:
        super().__init__([reply()])
        self.answers = list(answers)
        self.asked: list[tuple[str, bool]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def list_models(self, provider: str, *, again: bool = False) -> ListAnswer:
        self.asked.append((provider, again))
        await self.gate.wait()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def reach(self, environment: Mapping[str, str]) -> None:
        pass


def listing(*names: str, known: KnownModel | None = None, at: float = 0.0) -> Listing:
    known = known or KnownModel(400_000, 9, "tv", (Price(-1, 1e-6, 2.5e-6, 0, 0, 0),))
    return Listing(at or time.time(), tuple(ListedModel(name, known, 1_789_344_000) for name in names))


@pytest.fixture(autouse=True)
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of xAI alone, and no local server."""

    async def nothing(memory: object) -> tuple[Suggestion, ...]:
        return ()

    monkeypatch.setattr("tui_agent.model.discovery.discover", nothing)
    monkeypatch.setenv("XAI_API_KEY", "sk-0123456789")


async def opened(it: Driven) -> OptionList:
    await it.press("ctrl+o", "M")
    await it.until(lambda: isinstance(it.app.screen, ModelChooser), "the list of models")
    await it.shows("or type provider/model")
    return it.app.screen.query_one(OptionList)


def use(model: ScriptedModel) -> dict[str, Any]:
    """What `on_screen` is given so that this model answers, and none is chosen."""

    def prepare(session: Session) -> None:
        session.models.model = model

    return {"prepare": prepare, "overrides": ["model="]}


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_opens_with_what_is_kept_and_fills_in(tmp_path: Path, size: tuple[int, int]) -> None:
    way = route("xai/-", os.environ)
    assert way is not None
    cache_listing(way, listing("grok-kept", at=time.time() - KEPT_SECONDS - 5))
    model = ListingModel(ListAnswer(listing("grok-9.5", "grok-kept")), ListAnswer(listing("grok-10")))
    model.gate.clear()
    async with on_screen(tmp_path, size=size, **use(model)) as it:
        await it.shows("Choose a model by its digit")
        assert model.asked == [], "nothing is asked before the list is opened"
        await opened(it)
        await it.shows("xai/grok-kept")
        await it.shows("asking xai")
        assert model.asked == [("xai", False)] and "grok-9.5" not in it.text
        model.gate.set()
        await it.shows("xai/grok-9.5")
        assert "asking" not in it.text and "400k  $1 / $2.5" in it.text
        await it.press(*"grok-9.5")
        await it.shows("2026-09-14 · 400k")
        await it.press(*["backspace"] * 8)
        await it.press("tab")
        await it.shows("xai/grok-10")
        assert model.asked[1:] == [("xai", True)]
        await it.press("escape")


async def test_a_list_of_today_is_not_asked_for(tmp_path: Path) -> None:
    way = route("xai/-", os.environ)
    assert way is not None
    cache_listing(way, listing("grok-kept"))
    model = ListingModel(ListAnswer())
    async with on_screen(tmp_path, **use(model)) as it:
        await opened(it)
        await it.shows("xai/grok-kept")
        await it.press("escape")
    assert model.asked == []


async def test_what_goes_wrong_is_one_quiet_line(tmp_path: Path) -> None:
    model = ListingModel(ListAnswer(error="the key was refused (401)"), ListAnswer(listing("grok-9")))
    async with on_screen(tmp_path, size=SMALL, **use(model)) as it:
        await opened(it)
        await it.shows("xai: the key was refused (401)")
        await it.shows("xai/grok-4.7")  # as our table has it
        await it.press("tab")
        await it.shows("xai/grok-9")
        assert "refused" not in it.text and not it.session.state.notices.items


async def test_a_list_without_the_model_in_use_is_said_there_alone(tmp_path: Path) -> None:
    model = ListingModel(ListAnswer(listing("grok-9")))
    options: dict[str, Any] = {**use(model), "overrides": ["model=xai/grok-4.7"]}
    async with on_screen(tmp_path, size=LARGE, **options) as it:
        await opened(it)
        await it.shows("xai/grok-4.7 is not in the list of xai")
        await it.shows("xai/grok-4.7   in use")
        assert not it.session.state.notices.items


async def test_five_thousand_models_are_narrowed_by_words_and_made_as_they_are_reached(
    tmp_path: Path,
) -> None:
    names = [f"maker-{number % 7}/m-{number}" for number in range(MOST_MODELS)]
    async with on_screen(tmp_path, size=LARGE, **use(ListingModel(ListAnswer(listing(*names))))) as it:
        rows = await opened(it)
        await it.shows("Models · 5,0")
        assert rows.option_count == MOST
        await it.press("up")
        await it.until(lambda: rows.option_count == 2 * MOST, "the next rows")
        await it.press(*"4999 pictures")
        await it.until(lambda: "m-4999" in it.text and rows.option_count < 5, "the model that fits")
        await it.press("enter")
        await it.until(lambda: it.session.state.model.name == "xai/maker-1/m-4999")


async def test_a_long_list_with_hostile_names_from_a_server_lacks_the_model_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = [
        "grok-\x1b[2Jwiped",
        "grok-\nnext",
        "grok-\u202egpj",
        "grok-\x9b31m",
        "grok-\x07",
        "grok-" + "x" * 300,
    ]
    names = [*hostile, *(f"grok-{number}.5" for number in range(MOST_MODELS + 1000))]
    body = json.dumps({"data": [{"id": name, "object": "model"} for name in names]}).encode()
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    monkeypatch.setenv("XAI_API_BASE", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")

    def prepare(session: Session) -> None:
        child = ChildModel(environment=dict(os.environ))
        session.models.model = LocalModels(child, ServerMemory(tmp_path / "memory"), 32_768)

    async with (
        server,
        on_screen(tmp_path, size=LARGE, prepare=prepare, overrides=["model=xai/grok-4.7"]) as it,
    ):
        rows = await opened(it)
        await it.shows("xai/grok-4.7 is not in the list of xai")
        await it.shows(f"Models · {MOST_MODELS:,}"[:-1])
        assert "xai/grok-4.7   in use" in it.text
        assert asked == [b"GET /v1/models HTTP/1.1"]
        await it.press(*"wiped")
        await it.until(lambda: "wiped   as typed" in it.text and rows.option_count < 5)
        await it.press("escape")
        assert it.session.models.name == "xai/grok-4.7", "what is not listed may still answer"
        await it.session.models.close()


async def test_a_model_that_is_switched_off_is_found_by_words_and_its_choice_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk")
    next_name = suggestion("deepseek", today())
    async with on_screen(tmp_path, size=(180, 48), **use(ListingModel(ListAnswer()))) as it:
        await opened(it)
        await it.shows("deepseek/deepseek-v4-pro")
        assert "deepseek-chat" not in it.text
        await it.press(*"chat deep")
        await it.shows(f"retired since 2026-07-24, replaced by {next_name}")
        await it.press("enter")
        said = f"deepseek/deepseek-chat was switched off on 2026-07-24; {next_name} follows it"
        await it.until(lambda: [1 for one in it.session.state.notices.items if one.text == said], said)
        await it.session.models.notify_retirement()
        assert len([1 for one in it.session.state.notices.items if one.text == said]) == 1


async def test_a_start_with_a_model_that_is_switched_off_is_noticed(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        **use(ListingModel(ListAnswer())),
        "overrides": ["model=deepseek/deepseek-chat"],
    }
    async with on_screen(tmp_path, **options) as it:
        await it.until(lambda: it.session.state.notices.items, "a notice")
        assert "was switched off on 2026-07-24" in it.session.state.notices.items[0].text


async def test_a_key_in_the_environment_needs_two_keys_to_the_first_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def brain(view: View) -> Reply:
        return Reply((Say(json.dumps({"summary": "It fetches pages."})),))

    def prepare(session: Session) -> None:
        child = ChildModel(environment=dict(os.environ))
        session.models.model = LocalModels(child, ServerMemory(tmp_path / "memory"), 32_768)

    keys = ("enter", "enter")
    name = suggestion("xai", today())
    with StrictServer("xai", brain=brain, model=name.partition("/")[2]) as server:
        for variable, value in server.environment.items():
            monkeypatch.setenv(variable, value)
        async with on_screen(tmp_path, prepare=prepare, overrides=["model=", "protocol=auto"]) as it:
            await it.press(*"What is this")
            await it.press(*keys[:1])
            await it.until(lambda: isinstance(it.app.screen, ModelChooser), "the list")
            await it.press(*keys[1:])
            await it.until(lambda: "It fetches pages." in it.text, "the answer")
            assert it.session.state.model.name == name
            assert it.session.state.turn.request == "What is this"
            model = it.session.models.model
            await model.close()
        assert not server.violations


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────


def an_offer(name: str = "m", **fields: Any) -> Offer:
    return replace(Offer("xai", name, KnownModel(400_000, 9, "tv")), **fields)


def test_rows_fit_their_width_and_say_what_is_known() -> None:
    ended = an_offer(known=KnownModel(0, 0, "", ends="2026-07-24"), ended=True, follower="xai/n")
    for width in (70, 115):
        assert offer_row(an_offer("m" * 200), width).words.cell_length <= width
        assert offer_row(ended, width).words.cell_length <= width
    assert "retired since 2026-07-24, replaced by xai/n" in str(offer_row(ended, 115).words)
    assert "retired since 2026-07-24" in str(offer_row(ended, 70).words)
    assert "ends 2027-01-01" in str(
        offer_row(an_offer(known=KnownModel(1, 1, "t", ends="2027-01-01")), 70).words
    )
    assert about(an_offer(), 115) == "400k tokens · functions pictures"
    assert [tokens(count) for count in (0, 900, 131_072, 1_000_000, 1_050_000)] == [
        "",
        "900",
        "131k",
        "1M",
        "1.1M",
    ]


def test_every_word_must_match() -> None:
    offers = [an_offer("grok-4.7"), an_offer("grok-mini", known=KnownModel(1, 1, "t"))]
    assert [one.model for one in fitting("PICTURES grok", offers, frozenset())] == ["grok-4.7"]
    assert fitting("grok opus", offers, frozenset()) == []
    assert fitting("", offers, frozenset(["xai/grok-4.7"])) == offers[1:]


def test_the_newest_is_first_and_what_ended_last() -> None:
    known = KnownModel(1, 1, "t")
    old = replace(known, ends="2026-01-01")
    made = Listing(
        1.0,
        (ListedModel("a-1", known, 1), ListedModel("b-9", known, 200_000), ListedModel("c-1", old, 900_000)),
    )
    assert [one.model for one in offers_of("openrouter", made, DAY)] == ["b-9", "a-1", "c-1"]
    ours = [one.model for one in offers_of("anthropic", Listing(), DAY)]
    assert ours.index("claude-opus-5-5") < ours.index("claude-opus-5") < ours.index("claude-opus-4-8")
    mine = list(offers_of("deepseek", Listing(1.0, (ListedModel("deepseek-v9", known),)), DAY))
    assert [one.model for one in mine if not one.ended] == ["deepseek-v9"], "an account's list counts"
    assert {one.model for one in mine if one.ended} >= {"deepseek-chat", "deepseek-reasoner"}


async def test_the_newest_is_first_across_providers() -> None:
    keys = {"XAI_API_KEY": "sk-0123456789", "OPENROUTER_API_KEY": "sk-0123456789", "GEMINI_API_KEY": "k"}
    dated = {"openrouter": (("a-2", 900), ("a-1", 100)), "xai": (("b-2", 500), ("b-1", 0), ("b-0", 0))}
    undated = {"gemini": (("c-2", 0), ("c-1", 0))}
    for provider, models in (dated | undated).items():
        way = route(f"{provider}/-", keys)
        assert way is not None
        known = KnownModel(1, 1, "t")
        cache_listing(
            way, Listing(time.time(), tuple(ListedModel(name, known, 86_400 * day) for name, day in models))
        )
    offers = Offers(lambda: ScriptedModel([]), lambda: keys)
    await offers.read()
    names = [offer.model for offer in offers.all() if not offer.ended]
    assert names == ["a-2", "b-2", "a-1", "c-2", "c-1", "b-1", "b-0"]

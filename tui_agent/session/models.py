"""Access to the model, request limits, and selectable models of providers with a key or login."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import NoModel, SessionError
from tui_agent.log.core import Core, call
from tui_agent.model.client import CanReach, CanWarm, Model, ModelRequest, UsageChunk
from tui_agent.model.local import LocalModels, ProviderFiles, StoresFiles
from tui_agent.model.login.services import needed, service_of
from tui_agent.model.login.store import LoginStore, stored_keys
from tui_agent.model.model_listing import LOGIN, ListedModel, Listing, ListsModels, cached_listing, is_chat
from tui_agent.model.model_table import (
    KnownModel,
    Route,
    about_the_end,
    follower,
    is_ended,
    provider_of,
    route,
    rules_for,
    split,
    table,
    today,
    version_of,
)
from tui_agent.model.rate_limit import Allowance, Pace, PacedModel
from tui_agent.model.rules import effort_note, level_of, providers, rules_of
from tui_agent.model.servers import ServerMemory, address_of, is_local
from tui_agent.settings.files import save
from tui_agent.settings.folders import user_folders
from tui_agent.settings.schema import Effort, Settings
from tui_agent.store import events as e
from tui_agent.store.events import ModelStatusChanged, Store
from tui_agent.store.state import State, TurnSlice
from tui_agent.turn.model_choice import chosen_model, is_chosen, request_options

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion
    from tui_agent.processes.child import ChildProcess


class Offer(Struct, frozen=True):
    """`created` is a Unix time, 0 if unknown. `follower` replaces an `ended` model."""

    provider: str
    model: str
    known: KnownModel
    created: int = 0
    ended: bool = False
    follower: str = ""

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


class Offers:
    """Models, newest first. Makes no request before `ask`."""

    def __init__(self, model: Callable[[], Model], environment: Callable[[], Mapping[str, str]]) -> None:
        self._model = model
        self._environment = environment
        self._lists: dict[str, Listing] = {}
        self._offers: dict[str, tuple[Offer, ...]] = {}
        #: Providers with a pending request, and errors of failed ones.
        self.asking: set[str] = set()
        self.errors: dict[str, str] = {}

    def suggested(self) -> tuple[Suggestion, ...]:
        from tui_agent.model.discovery import with_keys

        return tuple(with_keys(self._environment()))

    async def read(self) -> None:
        ways = await asyncio.to_thread(self._routes)
        lists = await asyncio.to_thread(
            lambda: {provider: cached_listing(way) for provider, way in ways.items()}
        )
        self._lists = lists
        self._offers = {provider: await _made(provider, listing) for provider, listing in lists.items()}

    async def ask(self, changed: Callable[[], None], *, again: bool = False) -> None:
        """Requests lists not cached today, or all with `again`."""
        model = self._model()
        if not isinstance(model, ListsModels):
            return
        old = [
            provider
            for provider, listing in self._lists.items()
            if rules_of(provider).listing and (again or not listing.fresh)
        ]
        self.asking.update(old)
        changed()

        async def one(provider: str) -> None:
            try:
                answer = await model.list_models(provider, again=again)
            finally:
                self.asking.discard(provider)
            self.errors.pop(provider, None)
            if answer.error:
                self.errors[provider] = answer.error
            if answer.listing.at:
                self._lists[provider] = answer.listing
                self._offers[provider] = await _made(provider, answer.listing)
            changed()

        await asyncio.gather(*map(one, old))

    def all(self) -> list[Offer]:
        """Dated models newest first, then by rank; retired last."""
        ranked = [(rank, offer) for offers in self._offers.values() for rank, offer in enumerate(offers)]
        ranked.sort(key=lambda it: (it[1].ended, not it[1].created, -_day(it[1]), it[0]))
        return [offer for _, offer in ranked]

    def lacks(self, name: str) -> str:
        """The model's provider if its list lacks the model; otherwise ""."""
        provider, _, model = name.partition("/")
        listing = self._lists.get(provider, Listing())
        names = {listed.name for listed in listing.models}
        return provider if names and not names & {model, model.partition(":")[0]} else ""

    def _routes(self) -> dict[str, Route]:
        environment = self._environment()
        logins = {name for name, login in LoginStore().names().items() if not login.ended}
        found = {}
        for provider in providers():
            rules, way = rules_of(provider), route(f"{provider}/-", environment)
            if way is None or rules.key or not rules.suggest:
                continue
            if provider == "openai" and is_local(way.address):
                continue
            if way.key:
                found[provider] = way
            elif (service := needed(f"{provider}/-", environment)) and service.name in logins:
                found[provider] = replace(way, key=LOGIN)
        return found


async def _made(provider: str, listing: Listing) -> tuple[Offer, ...]:
    return await asyncio.to_thread(lambda: tuple(offers_of(provider, listing, today())))


def offers_of(provider: str, listing: Listing, day: date) -> Iterator[Offer]:
    """Yields the newest first, retired models last. Without a list, uses the table."""
    known = {name: it for name, it in table().models.get(provider, {}).items() if is_chat(name)}
    listed = {one.name: one for one in listing.models}
    if not listed:
        listed = {name: ListedModel(name, it) for name, it in known.items() if not name.startswith("ft:")}
    ended = {
        name: ListedModel(name, it)
        for name, it in known.items()
        if is_ended(it, day) and not name.startswith("ft:")
    }
    made = []
    for name, one in {**ended, **listed}.items():
        ours, it = known.get(name), one.known
        if ours is not None:
            it = replace(
                ours,
                window=ours.window or it.window,
                output=ours.output or it.output,
                can="".join(sorted({*ours.can, *it.can}, key="tsvr".find)),
                prices=ours.prices or it.prices,
                ends=it.ends or ours.ends,
            )
        made.append(Offer(provider, one.name, it, one.created, is_ended(it, day)))
    for offer in sorted(made, key=_newest_first):
        yield replace(offer, follower=follower(provider, offer.model, day)) if offer.ended else offer


def _newest_first(offer: Offer) -> tuple[bool, int, tuple[float, float], str]:
    major, minor = version_of(offer.model)
    return offer.ended, -_day(offer), (-major, -minor), offer.model


def _day(offer: Offer) -> int:
    return offer.created // 86_400


#: Test request, and its maximum input and output tokens.
TEST, TEST_TOKENS = "Answer with the one word OK.", (20, 10)


class ModelAccess:
    """With `shared` it belongs to a sub-task and counts only toward its parent's limits."""

    def __init__(
        self,
        core: Core,
        model: Model,
        name: str,
        shared: Allowance | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.requests = Allowance(core.settings.limits.requests) if shared is None else shared
        self._shared = shared is not None
        self._journal = core.journal
        self._settings = core.settings
        self._pace = Pace()
        self._files: ProviderFiles | None = None
        #: Provider variables besides the environment, and prices per input and output token.
        self._reached: dict[str, str] = {}
        self._prices: tuple[float, float] | None = None
        self.found: tuple[Suggestion, ...] = ()
        self.offers = Offers(lambda: self.model, lambda: {**os.environ, **self._reached})
        core.journal.store.subscribe(self._on_event)

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=False)
    def paced(self) -> PacedModel:
        return PacedModel(self.model, self._pace, None if self._shared else self.requests)

    @call(changes=False)
    def without_limit(self) -> PacedModel:
        return PacedModel(self.model, self._pace)

    @call(changes=False)
    def renew(self) -> None:
        if not self._shared:
            self.requests.renew()

    @call(changes=False)
    async def find_key(self) -> None:
        if not self.name or not isinstance(self.model, CanReach):
            return
        if key := await asyncio.to_thread(stored_keys, self.name, os.environ):
            self._reached.update(key)
            await self.model.reach(key)

    @call(changes=False)
    async def start(self) -> None:
        if self.name:
            await self.model.start()

    @call(changes=False)
    async def warm(self) -> None:
        if self.name and isinstance(self.model, CanWarm):
            await self.model.warm(self.name)

    @call(changes=False)
    def check(self) -> None:
        """Raises `NoModel` if no model is chosen or a required key is missing. Makes no request."""
        if not self.name:
            raise NoModel("No model is selected", "choose one, or start the rehearsal")
        provider = provider_of(self.name)
        if not isinstance(self.model, CanReach) or provider is None:
            return
        from tui_agent.model.login.access import missing

        known = {**os.environ, **self._reached}
        if (service := service_of(self.name)) is not None:
            logins = LoginStore(user_folders().state)
            if (why := missing(self.name, known, logins)) is not None:
                raise NoModel(why.what, why.remedy)
            if service.name in logins.names():
                return
        if not provider.takes_key:
            return
        if not any(known.get(name) for name in (*provider.keys, provider.address)) and not address_of(
            self.name, known
        ):
            raise NoModel(
                f"{self.name} needs {provider.keys[0]}, which is not set", "enter the key, or choose another"
            )

    @call(changes=False)
    def price_of_a_test(self) -> str:
        if self._prices is None:
            return ""
        return f"about ${TEST_TOKENS[0] * self._prices[0] + TEST_TOKENS[1] * self._prices[1]:.6f}"

    @call(changes=True)
    async def test(self) -> str:
        """Returns duration and cost. Raises `ModelError`."""
        begun, usage = time.monotonic(), None
        request = ModelRequest(self.name, ({"role": "user", "content": TEST},), timeout=30.0, effort="none")
        async for chunk in self.model.stream(request):
            if isinstance(chunk, UsageChunk):
                usage = chunk
        seconds = f"answered in {time.monotonic() - begun:.1f} s"
        if usage is None:
            return seconds
        cost = "" if usage.cost is None else f", ${usage.cost:.6f}"
        return f"{seconds}, {usage.input + usage.output} tokens{cost}"

    @call(changes=False)
    def is_model(self, word: str) -> bool:
        listed = {offer.name for offer in self.offers.all()}
        return bool(word) and (word == self.name or word in listed or split(word) is not None)

    @call(changes=False)
    def save_as_default(self, folder: Path) -> Path:
        """Raises `FileError`."""
        return save(folder, "model", self.name)

    @call(changes=True)
    async def choose(self, name: str, environment: Mapping[str, str] | None = None) -> str:
        """Restarts the conversation. Returns a local server's test result, or "". Raises `ModelError`."""
        if self.state.session.rehearsal:
            raise SessionError(
                "The rehearsal uses recorded replies", "start `tui-agent --model NAME` for a real model"
            )
        name = name.strip()
        if environment and isinstance(self.model, CanReach):
            self._reached.update(environment)
            await self.model.reach(environment)
        await self.model.start()
        about = ""
        if isinstance(self.model, LocalModels):
            about = await self.model.test(name, environment or {})
        self.name = name
        await self.get_ready()
        await self.notify_retirement()
        return about

    @call(changes=True)
    async def set_effort(self, effort: Effort) -> str:
        """Returns a sentence with the model's own level, if different. Raises `NoModel`."""
        if not self.name:
            raise NoModel("No model is selected", "choose one first")
        await self._journal.record(e.EffortChosen(self.name, effort))
        another = effort_note(self.name, rules_for(self.name), effort)
        return f"Effort {effort} is used from now on" + (f" ({another})" if another else "")

    @call(changes=False)
    def effort(self, name: str = "") -> Effort:
        state = self.state if self.state.turn.running else replace(self.state, turn=TurnSlice())
        return request_options(self._settings, state, name or self.name).effort

    @call(changes=False)
    def level(self, effort: Effort, name: str = "") -> str:
        """Returns "" if the provider chooses it."""
        return level_of(rules_for(name or self.name), effort)

    @call(changes=False)
    async def notify_level(self) -> None:
        name = self.state.model.name
        words = effort_note(name, rules_for(name), request_options(self._settings, self.state, name).effort)
        if words and all(words not in notice.text for notice in self.state.notices.items):
            await self._journal.record_soon(e.NoticeGiven("info", words))

    @call(changes=False)
    async def notify_retirement(self) -> None:
        way = route(self.name, {**os.environ, **self._reached}) if isinstance(self.model, CanReach) else None
        if way is None or not way.own or way.known is None or self._shared:
            return
        words = about_the_end(way.provider, way.model, way.known)
        if words and all(words not in notice.text for notice in self.state.notices.items):
            await self._journal.record(e.NoticeGiven("warning", words))

    @call(changes=False)
    async def reach(self, environment: Mapping[str, str]) -> None:
        self._reached.update(environment)
        if isinstance(self.model, CanReach):
            await self.model.reach(environment)

    @call(changes=False)
    async def find(self) -> tuple[Suggestion, ...]:
        """Does not query a server in use."""
        from tui_agent.model.discovery import discover

        memory = self.model.memory if isinstance(self.model, LocalModels) else None
        self.found = await discover(memory=memory)
        return self.found

    @call(changes=False)
    async def get_ready(self) -> None:
        """Determines name, dialect and window. Raises `ModelError`."""
        name = self.name
        if not name:
            raise NoModel(
                "No model is configured",
                "start with --model NAME, set `model` in settings.toml, or try `tui-agent demo`",
            )
        abilities = await self.model.abilities(name)
        self._prices = abilities.prices
        event = chosen_model(self._settings, name, abilities)
        if not is_chosen(self.state.model, event):
            await self._journal.record_soon(event)

    @call(changes=False)
    def files(self) -> ProviderFiles | None:
        wanted = self._settings.files_api == "on"
        if self._files is None and wanted and isinstance(self.model, StoresFiles):
            self._files = ProviderFiles(self.model)
        return self._files

    @call(changes=False)
    async def forget_uploads(self) -> None:
        uploads = self.state.conversation
        if uploads.uploads and not uploads.uploads_ended:
            await self._journal.record(e.UploadsEnded())
            if store := self.files():
                store.adopt(self.state.model.name, uploads.uploads)

    @call(changes=False)
    async def end_uploads(self) -> None:
        if self._files is None:
            return
        sentence = await self._files.close()
        left = [e.NoticeGiven("warning", sentence)] if sentence else []
        ended = [e.UploadsEnded()] if self.state.conversation.uploads else []
        await self._journal.record(*left, *ended)

    @call(changes=False)
    async def close(self) -> None:
        await self.model.close()

    def _on_event(self, event: e.Event, state: State) -> None:
        match event:
            case e.ModelChosen(name):
                self.name = name  # keeps a turn's fallback
            case e.TurnStarted(unasked=False):
                self.renew()


def make_model(
    settings: Settings,
    replay: Path | None,
    record: Path | None,
    store: Store,
    process: ChildProcess | None = None,
) -> tuple[Model, str]:
    """Starts nothing; never imports litellm."""
    name = settings.model or store.state.model.name  # a choice on the screen takes precedence
    if replay is not None:
        from tui_agent.model.recording import RecordedModel

        recorded = RecordedModel(replay)
        model: Model = recorded
        name = recorded.recording.header.model
        recorded.forget(message.text for message in store.state.chat.messages if message.kind == "person")
    else:
        from tui_agent.model.child_model import ChildModel

        model = ChildModel(
            on_status=lambda status: store.emit(ModelStatusChanged(status)),
            transport=settings.models.transport,
            model=name,
            process=process,
        )
    if record is not None:
        from tui_agent.model.recording import Recorder

        model = Recorder(model, record)
    if replay is None:
        model = LocalModels(model, ServerMemory(user_folders().state), settings.models.local_window)
    return model, name

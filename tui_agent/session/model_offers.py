"""Selectable models of providers with a key or login, from their lists and the built-in table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.model.client import Model
from tui_agent.model.login.services import needed
from tui_agent.model.login.store import LoginStore
from tui_agent.model.model_listing import LOGIN, ListedModel, Listing, ListsModels, cached_listing, is_chat
from tui_agent.model.model_table import KnownModel, Route, route, table
from tui_agent.model.providers import follower, is_ended, today, version_of
from tui_agent.model.rules import providers, rules_of
from tui_agent.model.servers import is_local

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion


class Offer(Struct, frozen=True):
    """A provider's model. `created` is in seconds since 1970, 0 if unknown; `ended`: retired, with `follower`
    as its successor."""

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
    """Models of each provider, newest first. Makes no request before `ask`."""

    def __init__(self, model: Callable[[], Model], environment: Callable[[], Mapping[str, str]]) -> None:
        self._model = model
        self._environment = environment
        #: Lists by provider; empty if unavailable.
        self._lists: dict[str, Listing] = {}
        self._offers: dict[str, tuple[Offer, ...]] = {}
        #: Providers with a pending request, and errors of failed requests.
        self.asking: set[str] = set()
        self.errors: dict[str, str] = {}

    def suggested(self) -> tuple[Suggestion, ...]:
        from tui_agent.model.discovery import with_keys

        return tuple(with_keys(self._environment()))

    async def read(self) -> None:
        """Makes no request."""
        ways = await asyncio.to_thread(self._routes)
        lists = await asyncio.to_thread(
            lambda: {provider: cached_listing(way) for provider, way in ways.items()}
        )
        self._lists = lists
        self._offers = {provider: await _made(provider, listing) for provider, listing in lists.items()}

    async def ask(self, changed: Callable[[], None], *, again: bool = False) -> None:
        """Requests lists not cached today, or all with `again`, concurrently. Calls `changed` after each
        response."""
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
        """All models: dated models newest first, then undated models by rank; retired models last."""
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
        """Blocking."""
        environment = self._environment()
        logins = {name for name, login in LoginStore().names().items() if not login.ended}
        found = {}
        for provider in providers():
            if way := _route_to(provider, environment, logins):
                found[provider] = way
        return found


def _route_to(provider: str, environment: Mapping[str, str], logins: set[str]) -> Route | None:
    """Returns None for local servers, which discovery queries."""
    rules = rules_of(provider)
    way = route(f"{provider}/-", environment)
    if way is None or rules.key or not rules.suggest or (provider == "openai" and is_local(way.address)):
        return None
    service = needed(f"{provider}/-", environment)
    if way.key or service is None:
        return way if way.key else None
    return replace(way, key=LOGIN) if service.name in logins else None


async def _made(provider: str, listing: Listing) -> tuple[Offer, ...]:
    return await asyncio.to_thread(lambda: tuple(offers_of(provider, listing, today())))


def offers_of(provider: str, listing: Listing, day: date) -> Iterator[Offer]:
    """Models of a list with table data, newest first; without a list, those of the table. Retired models
    last, even if unlisted."""
    known = {name: it for name, it in table().models.get(provider, {}).items() if is_chat(name)}
    listed = {one.name: one for one in listing.models}
    if not listed:
        listed = {name: ListedModel(name, it) for name, it in known.items() if not name.startswith("ft:")}
    ended = {
        name: ListedModel(name, it)
        for name, it in known.items()
        if is_ended(it, day) and not name.startswith("ft:")
    }
    merged = (
        replace(one, known=_merged(known.get(name), one.known)) for name, one in {**ended, **listed}.items()
    )
    made = (Offer(provider, one.name, one.known, one.created, is_ended(one.known, day)) for one in merged)
    for offer in sorted(made, key=_newest_first):
        yield replace(offer, follower=follower(provider, offer.model, day)) if offer.ended else offer


def _newest_first(offer: Offer) -> tuple[bool, int, tuple[float, float], str]:
    major, minor = version_of(offer.model)
    return offer.ended, -_day(offer), (-major, -minor), offer.model


def _day(offer: Offer) -> int:
    return offer.created // 86_400


def _merged(ours: KnownModel | None, theirs: KnownModel) -> KnownModel:
    if ours is None:
        return theirs
    return replace(
        ours,
        window=ours.window or theirs.window,
        output=ours.output or theirs.output,
        can="".join(sorted({*ours.can, *theirs.can}, key="tsvr".find)),
        prices=ours.prices or theirs.prices,
        ends=theirs.ends or ours.ends,
    )

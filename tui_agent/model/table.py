"""What is known of providers and models without litellm: addresses, keys, windows, abilities and prices.

`models.json` is made from litellm by `make models`; a test asks litellm about every model in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tui_agent.model.client import Abilities

PATH = Path(__file__).with_name("models.json")


class Price(Struct, frozen=True, array_like=True):
    """Dollars a token, where a request has more than `above` tokens; `made` is for what a cache takes in."""

    above: int
    input: float
    output: float
    cached: float
    made: float


class KnownModel(Struct, frozen=True, array_like=True):
    """`window` and `output` in tokens, 0 where unknown. `can` holds a letter for each ability, see `Ability`."""

    window: int
    output: int
    can: str
    #: The cheapest first.
    prices: tuple[Price, ...] = ()

    @property
    def abilities(self) -> dict[str, Any]:
        """As the fields of `Abilities`, but for the name."""
        return {
            "window": self.window,
            "tools": "t" in self.can,
            "schema": "s" in self.can,
            "cache_marks": "c" in self.can,
            "sees": "v" in self.can,
            "known": True,
            "prices": (self.prices[0].input, self.prices[0].output) if self.prices else None,
        }

    def cost(self, input: int, output: int, cached: int, made: int) -> float | None:
        """Dollars for so many tokens, of which some came from a cache and some were put into it."""
        price = next((price for price in reversed(self.prices) if input > price.above), None)
        if price is None:
            return None
        fresh = max(0, input - cached - made)
        return fresh * price.input + cached * price.cached + made * price.made + output * price.output


#: tools, schema, cache marks, vision; `o`: a schema goes into `output_format`; `r`: with tools it is asked through
#: the Responses API where the provider's own server is; `l`: it is always left to litellm.
Ability = Literal["t", "s", "c", "v", "o", "r", "l"]


class KnownProvider(Struct, frozen=True):
    """How one is reached. The first of the variables that is set counts.

    `key` is what is sent where there is none, `""` where there must be one. `drops` are the fields of messages that
    it is not sent, `body` is added to each request.
    """

    wire: Literal["openai", "anthropic"]
    address: str
    addresses: tuple[str, ...]
    keys: tuple[str, ...]
    key: str = ""
    drops: tuple[str, ...] = ()
    body: dict[str, Any] = {}
    headers: dict[str, str] = {}
    #: Headers whose values are variables of the environment.
    variables: dict[str, str] = {}
    #: Whether it takes a schema as we send it.
    schema: bool = True
    models: dict[str, KnownModel] = {}


class ModelTable(Struct, frozen=True):
    """`rules` are expressions for names that litellm knows something of though it does not know the model."""

    litellm: str
    rules: tuple[str, ...]
    providers: dict[str, KnownProvider]


@cache
def table() -> ModelTable:
    return msgspec.json.decode(PATH.read_bytes(), type=ModelTable)


class Route(Struct, frozen=True):
    """A model at its provider: what it is called there, where that is, and what is known of it."""

    model: str
    provider: KnownProvider
    address: str
    key: str
    known: KnownModel | None

    @property
    def own(self) -> bool:
        """Whether it is the provider's own server that answers."""
        return self.address.rstrip("/") == self.provider.address

    @property
    def abilities(self) -> dict[str, Any]:
        return self.known.abilities if self.known else {}


def route(name: str, environment: Mapping[str, str]) -> Route | None:
    """How a model is reached directly; None where that is left to litellm, whatever is asked.

    A model that the table does not have is reached directly only at an address that the person has set.
    """
    if any(environment.get(variable) for variable in _FOR_LITELLM):
        return None
    prefix, slash, model = name.partition("/")
    if not slash:
        found = ((key, one) for key, one in table().providers.items() if name in one.models)
        prefix, provider = next(found, ("", None))
        model = name
    else:
        provider = table().providers.get(prefix)
    if provider is None or not model:
        return None
    address = next((value for one in provider.addresses if (value := environment.get(one))), provider.address)
    if not address:
        return None
    known = provider.models.get(model)
    made = Route(
        model,
        provider,
        address,
        next((value for one in provider.keys if (value := environment.get(one))), provider.key),
        known,
    )
    if known is None and ((made.own and provider.models) or _has_a_rule(name)):
        return None
    return None if known is not None and "l" in known.can else made


def served(made: Route, *, tools: bool, schema: bool, files: bool) -> bool:
    """Whether a request of this kind can go directly."""
    can = made.known.can if made.known else ""
    if files or (tools and "r" in can and made.own):
        return False
    if schema and (made.known is None or "s" in can):
        return made.provider.schema and (made.provider.wire == "openai" or "o" in can)
    return True


def _has_a_rule(name: str) -> bool:
    parts = name, name.partition("/")[2], name.rpartition("/")[2]
    return any(re.search(rule, part, re.IGNORECASE) for rule in table().rules for part in parts)


#: Settings of TLS, of litellm itself and of ways to sign in that only litellm keeps.
_FOR_LITELLM = (
    "SSL_SECURITY_LEVEL",
    "SSL_ECDH_CURVE",
    "SSL_CERTIFICATE",
    "LITELLM_PROXY_API_BASE",
    "OPENAI_CUSTOM_HEADERS",
    "ANTHROPIC_AUTH_TOKEN",
)


def abilities(name: str, made: Route) -> Abilities:
    return Abilities(name, **made.abilities)

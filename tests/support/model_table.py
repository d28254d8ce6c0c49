"""Makes `tui_agent/model/models.json` from litellm's price table: `make models`, or

python tests/support/model_table.py WHEEL     from the wheel of a litellm, which is only read
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tui_agent.model import model_table
from tui_agent.model.model_table import KnownModel, ModelTable, OffPeakPrice, Price
from tui_agent.model.rules import providers

#: litellm's own table, in its package.
NAME = "model_prices_and_context_window_backup.json"
Prices = Mapping[str, dict[str, Any]]

_ABOVE = re.compile(r"input_cost_per_token_above_(\d+)(k?)_tokens$")


def installed() -> tuple[str, Prices]:
    """The version of the litellm that is installed, and its table."""
    package = importlib.metadata.distribution("litellm")
    return package.version, msgspec.json.decode(
        Path(str(package.locate_file(f"litellm/{NAME}"))).read_bytes()
    )


def in_wheel(wheel: Path) -> tuple[str, Prices]:
    """The version of a wheel by its name, and its table."""
    with zipfile.ZipFile(wheel) as archive:
        return wheel.name.split("-")[1], msgspec.json.decode(archive.read(f"litellm/{NAME}"))


def made(version: str, theirs: Prices) -> ModelTable:
    """The table of a version of litellm as ours."""
    models = {name: dict(_models(name, theirs)) for name in providers()}
    return ModelTable(version, {name: known for name, known in models.items() if known})


def _models(provider: str, theirs: Prices) -> Iterator[tuple[str, KnownModel]]:
    """The models of a provider. Of one that is there twice, the entry with the provider's name counts."""
    found = {}
    for key in sorted(theirs, key=lambda key: (key.startswith(f"{provider}/"), key)):
        info = theirs[key]
        if info.get("litellm_provider") == provider and info.get("mode") in ("chat", "responses"):
            found[key.removeprefix(f"{provider}/")] = info
    for name in sorted(found):
        yield name, _model(found[name])


#: The letters of `Ability`, and litellm's names for them.
_ABLE = {
    "t": "supports_function_calling",
    "s": "supports_response_schema",
    "v": "supports_vision",
    "r": "supports_reasoning",
}


def _model(info: dict[str, Any]) -> KnownModel:
    can = "".join(letter for letter, name in _ABLE.items() if info.get(name))
    window = info.get("max_input_tokens") or info.get("max_tokens") or 0
    output = info.get("max_output_tokens") or 0
    ends = str(info.get("deprecation_date") or "")
    return KnownModel(int(window), int(output), can, prices(info), ends, off_peak(info))


def prices(info: dict[str, Any]) -> tuple[Price, ...]:
    """The steps of a price, as litellm's table has them: in ranges, or under names that end with a size."""
    if tiers := info.get("tiered_pricing"):
        return tuple(_price({**info, **tier}, "", int(tier["range"][0]) or -1, None) for tier in tiers)
    if info.get("input_cost_per_token") is None or info.get("output_cost_per_token") is None:
        return ()
    found = (match for key in info if info[key] is not None and (match := _ABOVE.match(key)))
    steps = sorted(
        (int(match[1]) * (1000 if match[2] else 1), f"_above_{match[1]}{match[2]}_tokens") for match in found
    )
    made: list[Price] = []
    for above, suffix in [(-1, ""), *steps]:
        inclusive = info.get("litellm_provider") == "xai" and above > 0
        made.append(_price(info, suffix, above - 1 if inclusive else above, made[-1] if made else None))
    return tuple(made)


def _price(info: dict[str, Any], suffix: str, above: int, before: Price | None) -> Price:
    def one(key: str, otherwise: float, lower: float | None) -> float:
        """The price of this step, else that of the step below if it has one of its own."""
        if (value := info.get(key + suffix)) is not None:
            return value
        return otherwise if lower is None or info.get(key) is None else lower

    given = one("input_cost_per_token", 0.0, before.input if before else None)
    output = one("output_cost_per_token", 0.0, before.output if before else None)
    cached = one("cache_read_input_token_cost", given, before.cached if before else None)
    written = one("cache_creation_input_token_cost", given, before.written if before else None)
    long = info.get(f"cache_creation_input_token_cost_above_1hr{suffix}")
    if long is None:
        base = info.get("cache_creation_input_token_cost_above_1hr")
        # an hour costs as many times more as it does in short requests
        long = written if base is None else base * written / info["cache_creation_input_token_cost"]
    return Price(above, given, output, cached, written, long)


def off_peak(info: dict[str, Any]) -> OffPeakPrice | None:
    """The hours in which a model costs less."""
    given = info.get("off_peak_pricing")
    if not given:
        return None
    spans = []
    for window in given["windows"]:
        hours = window["hours_utc"]
        days = tuple(window.get("weekdays") or range(1, 8))
        for span in [hours] if isinstance(hours, str) else hours:
            begin, end = span.split("-")
            spans.append((days, _minute(begin), _minute(end) or 1440))
    return OffPeakPrice(tuple(spans), _price({**info, **given}, "", -1, None))


def _minute(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def in_both() -> dict[str, tuple[KnownModel, KnownModel]]:
    """The models that our table and the installed litellm have, by full name: as ours has it, and as theirs would be
    made."""
    theirs = made(*installed()).models
    return {
        f"{provider}/{name}": (ours, other)
        for provider, models in model_table.table().models.items()
        for name, ours in models.items()
        if (other := theirs.get(provider, {}).get(name)) is not None
    }


def encoded(made: ModelTable) -> bytes:
    """A line a model, so that a newer litellm is a small difference."""
    made = msgspec.json.decode(msgspec.json.encode(made), type=ModelTable)  # numbers as they are read
    parts = []
    for name, known in made.models.items():
        lines = (f'"{key}":{msgspec.json.encode(one).decode()}' for key, one in known.items())
        parts.append(f'"{name}":{{\n' + ",\n".join(lines) + "\n}")
    joined = ",\n".join(parts)
    return f'{{"litellm":"{made.litellm}","models":{{\n{joined}\n}}}}\n'.encode()


if __name__ == "__main__":
    version, theirs = in_wheel(Path(sys.argv[1])) if sys.argv[1:] else installed()
    model_table.PATH.write_bytes(encoded(made(version, theirs)))

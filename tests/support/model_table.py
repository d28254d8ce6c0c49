"""Makes `tui_agent/model/models.json` from litellm: `python tests/support/model_table.py`, or `make models`."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tui_agent.model import table
from tui_agent.model.litellm_client import litellm
from tui_agent.model.rules import providers
from tui_agent.model.table import KnownModel, ModelTable, OffPeak, Price

_ABOVE = re.compile(r"input_cost_per_token_above_(\d+)(k?)_tokens$")


def made() -> ModelTable:
    """The table as litellm would have it now."""
    models = {name: dict(_models(name)) for name in providers()}
    return ModelTable(
        importlib.metadata.version("litellm"), {name: known for name, known in models.items() if known}
    )


def _models(provider: str) -> Iterator[tuple[str, KnownModel]]:
    for key in sorted(litellm().model_cost):
        info = litellm().model_cost[key]
        name = key.removeprefix(f"{provider}/")
        if info.get("litellm_provider") == provider and info.get("mode") in ("chat", "responses"):
            yield name, _model(f"{provider}/{name}", info)


def _model(name: str, info: dict[str, Any]) -> KnownModel:
    can = "".join(letter for letter, able in zip("tsv", able_to(name), strict=True) if able)
    window = info.get("max_input_tokens") or info.get("max_tokens") or 0
    output = info.get("max_output_tokens") or 0
    ends = str(info.get("deprecation_date") or "")
    return KnownModel(int(window), int(output), can, prices(info), ends, off_peak(info))


def able_to(name: str) -> tuple[bool, bool, bool]:
    """Whether a model takes tools, schemas and images; none of them if litellm does not find it."""
    try:
        info = litellm().get_model_info(name)
    except Exception:  # litellm raises plain exceptions here
        return False, False, False
    names = ("supports_function_calling", "supports_response_schema", "supports_vision")
    tools, schema, sees = (bool(info.get(one)) for one in names)
    return tools, schema, sees


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


def off_peak(info: dict[str, Any]) -> OffPeak | None:
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
    return OffPeak(tuple(spans), _price({**info, **given}, "", -1, None))


def _minute(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def encoded(made: ModelTable) -> bytes:
    """A line a model, so that a newer litellm is a small difference."""
    parts = []
    for name, known in made.models.items():
        lines = (f'"{key}":{msgspec.json.encode(one).decode()}' for key, one in known.items())
        parts.append(f'"{name}":{{\n' + ",\n".join(lines) + "\n}")
    joined = ",\n".join(parts)
    return f'{{"litellm":"{made.litellm}","models":{{\n{joined}\n}}}}\n'.encode()


if __name__ == "__main__":
    table.PATH.write_bytes(encoded(made()))

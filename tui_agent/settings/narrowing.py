"""What a workspace's own settings may not do, however much the workspace is trusted (X3).

They may make tui-agent fit the project; they may not choose who is asked, spend more, ask the person less,
or let anything leave the machine. What no rule names is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tui_agent.settings.catalog import Value
from tui_agent.settings.faults import Fault
from tui_agent.settings.layers import Layer

Rule = Literal["never", "lower", "higher"]
_DEPTH = "subtasks.max_depth"

#: `lower`: may only be lowered, where 0 of a limit is no limit; `higher`: may only be raised.
RULES: Mapping[str, Rule] = {
    "model": "never",
    "planner_model": "never",
    "files_api": "never",
    "autonomy": "never",
    "auto_apply": "never",
    "context.window": "never",
    "undo.max_bytes": "never",
    "max_steps": "lower",
    "request_timeout": "lower",
    "subtasks.max_parallel": "lower",
    _DEPTH: "lower",
    "subtasks.max_seconds": "lower",
    "subtasks.max_tokens": "lower",
    "subtasks.max_cost": "lower",
    "limits.turn_tokens": "lower",
    "limits.session_tokens": "lower",
    "limits.turn_cost": "lower",
    "limits.session_cost": "lower",
    "limits.turns": "lower",
    "review.near_threshold": "higher",
}
#: Settings of which 0 is no limit.
_LIMITS = frozenset(key for key in RULES if key.startswith(("limits.", "subtasks.max_")) and key != _DEPTH)


def narrowed(layer: Layer, below: Mapping[str, Value]) -> Layer:
    """The layer of a workspace without what it may not set; `below` is what is in force without it."""
    refused = {key: why for key, value in layer.values.items() if (why := _why_not(key, value, below[key]))}
    faults = tuple(
        Fault(layer.where, f"a workspace may not {why} `{key}`", "set it in your own settings", key=key)
        for key, why in refused.items()
    )
    kept = {key: value for key, value in layer.values.items() if key not in refused}
    return Layer(layer.where, kept, layer.faults + faults)


def _why_not(key: str, value: Value, below: Value) -> str:
    if value == below:
        return ""
    match RULES.get(key):
        case "never":
            return "set"
        case "lower" if _amount(key, value) > _amount(key, below):
            return "raise"
        case "higher" if _amount(key, value) < _amount(key, below):
            return "lower"
        case _:
            return ""


def _amount(key: str, value: Value) -> float:
    assert isinstance(value, int | float)
    return float("inf") if key in _LIMITS and value == 0 else float(value)

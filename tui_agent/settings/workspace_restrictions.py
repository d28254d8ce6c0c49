"""Restricts the settings of a workspace, trusted or not.

A workspace may adapt tui-agent to the project and narrow its permissions. Only the settings listed below
are permitted; any other setting, new ones included, is reserved for the user: permissions, costs,
commands, questions, and data that leaves the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tui_agent.files.numbers import LARGEST, amount
from tui_agent.settings.catalog import Value
from tui_agent.settings.faults import ConfigFault
from tui_agent.settings.layers import Layer

Rule = Literal["free", "lower", "higher", "off", "more"]

#: `free`: any value. `lower`: may only decrease; 0 means unlimited for limits. `higher`: may only increase.
#: `off`: may only be disabled. `more`: entries are appended.
ALLOWED: Mapping[str, Rule] = {
    "theme": "free",
    "keys": "free",
    "base_files": "free",
    "instructions.names": "free",
    "instructions.exclude": "free",
    "instructions.max_bytes": "lower",
    "outline_tokens": "lower",
    "max_steps": "lower",
    "request_timeout": "lower",
    "files.max_per_action": "lower",
    "files.pattern_timeout": "lower",
    "known.max_files": "lower",
    "bundling.enabled": "off",
    "bundling.imports": "off",
    "bundling.tests": "off",
    "bundling.max_files": "lower",
    "bundling.depth": "lower",
    "review.near_threshold": "higher",
    "subtasks.max_parallel": "lower",
    "subtasks.max_depth": "lower",
    "subtasks.max_seconds": "lower",
    "subtasks.max_tokens": "lower",
    "subtasks.max_cost": "lower",
    "subtasks.max_per_turn": "lower",
    "commands.timeout": "lower",
    "commands.output_tokens": "lower",
    "checks.repairs": "lower",
    "limits.turn_tokens": "lower",
    "limits.session_tokens": "lower",
    "limits.turn_cost": "lower",
    "limits.session_cost": "lower",
    "limits.turns": "lower",
    "limits.requests": "lower",
    "limits.ask_at_cost": "lower",
    "tools.off": "more",
    "permissions.deny": "more",
    "permissions.ask": "more",
}
#: Settings for which 0 means unlimited.
_LIMITS = frozenset(
    key
    for key in ALLOWED
    if key.startswith(("limits.", "subtasks.max_"))
    and key not in ("subtasks.max_depth", "subtasks.max_parallel")
)


def narrowed(layer: Layer, below: Mapping[str, Value]) -> Layer:
    """Filters a workspace's layer by the permitted settings; `below` holds the effective values without
    it."""
    refused = {key: why for key, value in layer.values.items() if (why := _why_not(key, value, below[key]))}
    faults = tuple(
        ConfigFault(
            layer.where,
            f"a workspace may not {why} `{key}`",
            "set it in your own settings if you want it",
            layer.lines.get(key, 0),
            key,
        )
        for key, why in refused.items()
    )
    kept = {key: value for key, value in layer.values.items() if key not in refused}
    for key, value in kept.items():
        under = below[key]
        if ALLOWED.get(key) == "more" and isinstance(value, tuple) and isinstance(under, tuple):
            kept[key] = tuple(dict.fromkeys((*under, *value)))  # Existing entries are kept.
    return Layer(layer.where, kept, layer.faults + faults)


def _why_not(key: str, value: Value, below: Value) -> str:
    if value == below:
        return ""
    match ALLOWED.get(key):
        case None:
            return "set"
        case "off" if value:
            return "turn on"
        case "lower" if _amount(key, value) > _amount(key, below):
            return "raise"
        case "higher" if _amount(key, value) < _amount(key, below):
            return "lower"
    return ""


def _amount(key: str, value: Value) -> float:
    assert isinstance(value, int | float)
    return float("inf") if key in _LIMITS and value == 0 else amount(value, 0.0, least=-LARGEST)

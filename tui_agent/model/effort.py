"""Reasoning effort: maps the configured level to a provider's levels and request parameters."""

from __future__ import annotations

from typing import Any

from tui_agent.model.rules import LEVELS, Effort, Rules

#: Anthropic's minimum thinking budget, in tokens.
LEAST_BUDGET = 1_024
_OPENROUTER_HIGHEST = "xhigh"


def level_of(rules: Rules, effort: Effort) -> str:
    """Returns the provider's level: its highest for `max`, the next lower supported level, or its lowest.

    "" leaves the choice to the provider, as for models without levels or without a parameter for them.
    """
    if not rules.levels or not rules.effort:
        return ""
    if effort == "auto":
        return rules.auto
    if effort == "max":
        return rules.levels[-1]
    if effort in rules.levels:
        return effort
    lower = [level for level in rules.levels if _rank(level) < _rank(effort)]
    return lower[-1] if lower else rules.levels[0]


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else LEVELS.index("medium")


def effort_note(model: str, rules: Rules, effort: Effort) -> str:
    """ "" if it equals the configured one."""
    level = level_of(rules, effort)
    if not rules.levels or not rules.effort:
        return f"{model} has no effort levels" if effort != "auto" else ""
    if effort in ("auto", level):
        return ""
    if effort == "max":
        return f"{model}: max is {level}"
    return f"{model} has no effort {effort}: {level} is used instead"


def accepts_temperature(rules: Rules, effort: Effort) -> bool:
    if rules.temperature == "without_thinking":
        return not rules.levels or level_of(rules, effort) == "none"
    return rules.temperature == "always"


def parameters(rules: Rules, effort: Effort, most: int = 0) -> dict[str, Any]:
    """Request fields that set the level. `most` is the output limit in tokens, 0 for none.

    Gemini's belong in `thinkingConfig`; those of the Responses API are derived from `reasoning_effort`.
    """
    level = level_of(rules, effort)
    if not level:
        return {}
    off = level == "none"
    if off and rules.off:
        return dict(rules.off)
    match rules.effort:
        case "reasoning_effort":
            return {"reasoning_effort": level}
        case "adaptive":
            display = {"display": "summarized"} if rules.display else {}
            on = {"thinking": {"type": "adaptive", **display}, "output_config": {"effort": level}}
            return {"thinking": {"type": "disabled"}} if off else on
        case "budget":
            budget = rules.budgets.get(level, 0)
            budget = min(budget, most - LEAST_BUDGET) if most else budget
            enough = budget >= LEAST_BUDGET
            return {"thinking": {"type": "enabled", "budget_tokens": budget}} if enough else {}
        case "thinking_level":
            return {"thinkingLevel": level, "includeThoughts": True}
        case "thinking_budget":
            budget = rules.budgets.get(level, -1)
            budget = min(budget, most // 2) if most else budget
            return {"thinkingBudget": budget, "includeThoughts": budget != 0}
        case "thinking_switch":
            levels = [one for one in rules.levels if one != "none"]
            named = {"reasoning_effort": level} if len(levels) > 1 and not off else {}
            switch = {"type": "disabled"} if off else {"type": "enabled", **rules.on}
            return {"thinking": switch, **named}
        case "enable_thinking":
            budget = {"thinking_budget": rules.budgets[level]} if level in rules.budgets else {}
            return {"enable_thinking": not off, **budget}
        case "openrouter":
            return {"reasoning": {"effort": _OPENROUTER_HIGHEST if level == "max" else level}}
    return {}

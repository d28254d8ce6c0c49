"""How much a model thinks: the person's level as the provider's own, and the parameters that ask for it."""

from __future__ import annotations

from typing import Any

from tui_agent.model.rules import LEVELS, Effort, Rules

#: Fewer tokens of thinking are refused by Anthropic.
LEAST_BUDGET = 1_024
#: OpenRouter's word for the highest level.
_OPENROUTER_HIGHEST = "xhigh"


def level_of(rules: Rules, effort: Effort) -> str:
    """The provider's level: for `max` its highest, for a level that the model lacks the next lower one, or the lowest.

    "" leaves it to the provider, which is so for models without levels and where they cannot be asked for.
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


def in_words(model: str, rules: Rules, effort: Effort) -> str:
    """What the person is shown of a level that the model takes in another way; "" if it is taken as it is."""
    level = level_of(rules, effort)
    if not rules.levels or not rules.effort:
        return f"{model} has no levels of effort" if effort != "auto" else ""
    if effort in ("auto", level):
        return ""
    if effort == "max":
        return f"{model}: max is {level}"
    return f"{model} has no effort {effort}: {level} is used"


def accepts_temperature(rules: Rules, effort: Effort) -> bool:
    """Whether the model accepts a temperature at this level."""
    if rules.temperature == "without_thinking":
        return not rules.levels or level_of(rules, effort) == "none"
    return rules.temperature == "always"


def parameters(rules: Rules, effort: Effort, most: int = 0) -> dict[str, Any]:
    """The fields of a request body that ask for a level; `most` is the limit of the reply in tokens, 0 for none.

    Those of Gemini are the content of `thinkingConfig`, those of Responses come from `reasoning_effort`.
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
            budget = min(budget, most // 2) if most else budget  # the rest is for the answer
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

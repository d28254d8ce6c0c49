"""Which rule decides about a call, and which tools a sub-task's agent has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tui_agent.answers.values import SearchRequest
from tui_agent.settings.schema import PermissionSettings
from tui_agent.tools import run_command, search_text
from tui_agent.tools.permission import MOST_COMMAND, has_tool, refusal_of_path, verdict_of
from tui_agent.tools.tool import CallContext, Invocation, ToolContext

ASK = CallContext("ask")


def context(rules: dict[str, str], only: tuple[Any, ...] = ()) -> ToolContext:
    """Only the rules of a session."""
    settings = SimpleNamespace(
        permissions=PermissionSettings(**{name: (rule,) for name, rule in rules.items()})
    )
    return cast(ToolContext, SimpleNamespace(core=SimpleNamespace(settings=settings), only=only))


def command(words: str) -> Invocation:
    return Invocation("c", "run_command", ({"command": words},))


@pytest.mark.parametrize(
    ("rules", "words", "verdict"),
    [
        ({}, "make test", "ask"),
        ({"allow": "run_command"}, "make test", "allow"),
        ({"allow": "run_*"}, "make test", "allow"),
        ({"allow": "run_command(make test)"}, "make test", "allow"),
        ({"allow": "run_command(make *)"}, "make test", "ask"),  # a command is allowed word for word
        ({"allow": "run_command(make test)"}, "make test; rm x", "ask"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "rm -r x", "deny"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "make; A=1 /bin/rm x", "deny"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "make && 'rm' x", "deny"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "ls\nrm x", "deny"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "(rm x)", "deny"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "rm x; echo 'open", "deny"),
        ({"deny": "run_command(rm *)", "allow": "run_command"}, "echo rm x", "allow"),
        ({"deny": "search_text"}, "make", "ask"),
        ({"deny": "run_command", "ask": "run_command"}, "make", "deny"),
        ({"ask": "run_command(git push*)", "allow": "run_command"}, "git push", "ask"),
        ({"allow": "run_command(make"}, "make", "ask"),  # no rule
    ],
)
def test_the_first_rule_that_fits_decides(rules: dict[str, str], words: str, verdict: str) -> None:
    found = verdict_of(context(rules), run_command.TOOL, command(words), ASK)
    assert found == (verdict, rules.get(verdict, ""))


@pytest.mark.parametrize("remembered", ["exactly", "session", "never"])
def test_a_rule_allows_only_what_is_remembered_exactly(remembered: Any) -> None:
    found = CallContext("ask", remembered=remembered)
    verdict, rule = verdict_of(context({"allow": "run_command"}), run_command.TOOL, command("make"), found)
    assert (verdict, bool(rule)) == (("allow", True) if remembered == "exactly" else ("ask", False))


@pytest.mark.parametrize(
    ("globs", "rule", "fits"),
    [
        (("*.py",), "search_text([*].py)", True),
        (("*.py", "*.md"), "search_text([*].py)", False),
        (("./a.py",), "search_text(a.py)", True),
        (("a.py",), "read_files(a.py)", False),
    ],
)
def test_a_call_of_several_is_allowed_if_the_rule_fits_each(
    globs: tuple[str, ...], rule: str, fits: bool
) -> None:
    call = Invocation("c", "search_text", tuple(SearchRequest("x", glob) for glob in globs))
    assert (verdict_of(context({"allow": rule}), search_text.TOOL, call, ASK)[0] == "allow") is fits
    denied = verdict_of(context({"deny": rule}), search_text.TOOL, call, ASK)[0] == "deny"
    assert denied is ("search_text" in rule), "one target is enough to refuse"


@pytest.mark.parametrize(
    ("tools", "words", "covered"),
    [
        ({"run_command": ()}, "make; rm x", True),
        ({"run_*": ("make *",)}, "make test", True),
        ({"run_*": ("make *",)}, " make test ", True),
        ({"run_*": ("make *",)}, "make test; rm x", False),
        ({"run_*": ("make *",)}, "rm x", False),
        ({"search_text": ()}, "make", False),
        ({}, "make", False),
    ],
)
def test_the_tools_of_an_agent_cover_its_calls(
    tools: dict[str, tuple[str, ...]], words: str, covered: bool
) -> None:
    verdict, rule = verdict_of(
        context({"allow": "run_command"}, (tools,)), run_command.TOOL, command(words), ASK
    )
    assert (verdict == "deny") is not covered and ("sub-task" in rule) is not covered


def test_an_agent_has_the_tools_that_its_patterns_name() -> None:
    tools = ({"read_*": ()}, {"read_files": (), "srv__*": ()})
    assert (
        has_tool(tools, "read_files") and not has_tool(tools, "search_text") and has_tool((), "search_text")
    )
    assert has_tool(tools[1:], "call_tool") and not has_tool(tools, "call_tool")


def test_a_rule_with_a_pattern_refuses_a_path() -> None:
    rules = PermissionSettings(deny=("read_files(*.env)", "read_files"), ask=("search_text(docs/*)",))
    assert refusal_of_path(rules, "read_files", "a/.env") == "the rule read_files(*.env) denies it"
    assert refusal_of_path(rules, "search_text", "docs/a") == "the rule search_text(docs/*) asks about it"
    assert refusal_of_path(rules, "read_files", "docs/a") == refusal_of_path(rules, "search_text", "x") == ""


def test_no_rule_allows_a_command_that_a_shell_cannot_take() -> None:
    for length, verdict in ((MOST_COMMAND, "allow"), (MOST_COMMAND + 1, "deny")):
        call = command("x" * length)
        assert verdict_of(context({"allow": "run_command"}), run_command.TOOL, call, ASK)[0] == verdict

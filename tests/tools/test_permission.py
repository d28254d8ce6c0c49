"""Permission: deny first, then ask, then allow; an approval is for exactly what was shown; nobody asked is a no."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from support.sessions import calls, model_of, open_session, reply
from support.tool_contexts import Bench
from support.trees import make_tree, until

from tui_agent.headless.run import UnfinishedWork
from tui_agent.session.session import Session
from tui_agent.settings.loading import Layer, narrowed
from tui_agent.settings.schema import PermissionSettings, Settings
from tui_agent.store.event import Event
from tui_agent.store.state import PermissionDecision, State
from tui_agent.store.turn_events import PermissionDecided
from tui_agent.tools.call_hooks import BeforeCall, CallHooks
from tui_agent.tools.permission import (
    STORE,
    _as_words,
    _fits,
    approved,
    digest_of,
    forget_approval,
    has_tool,
    permitted,
    refusal_of_path,
    store_approval,
    stored_approvals,
    verdict_of,
)
from tui_agent.tools.search_text import TOOL as SEARCH_TOOL
from tui_agent.tools.tool import CallContext, Invocation, SessionCalls, Tool

DONE = reply("Done.")
open_asking = partial(open_session, protocol="tools", interactive=True)
SEARCH = ("search_text", {"pattern": "x", "glob": "a.py"})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", {"a.py": "x = 1\n", "private/k.py": "x = 2\n"})


def result(session: Session, request: int = -1) -> str:
    messages = model_of(session).requests[request].messages
    return str([message for message in messages if message["role"] == "tool"][-1]["content"])


async def turn(session: Session) -> None:
    await session.chat.submit("Look")
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ((), True),
        (("permissions.deny=search_text",), False),
        (("permissions.deny=search_text(*.py)", "permissions.allow=search_text"), False),
        (("permissions.deny=search_text(*.md)",), True),
        (("permissions.ask=search_text", "permissions.allow=search_text"), False),
        (("permissions.deny=read_files",), True),
    ],
)
async def test_deny_comes_first_then_ask_then_allow(
    workspace: Path, rules: Sequence[str], allowed: bool
) -> None:
    async with open_session(
        workspace, [calls(SEARCH), DONE], protocol="tools", overrides=rules, interactive=False
    ) as session:
        await turn(session)
        assert ("a.py:1" in result(session)) is allowed
        assert result(session).startswith("Error: not done") is not allowed
        notices = " ".join(notice.text for notice in session.state.notices.items)
        assert ("was not done" in notices) is not allowed
        assert len(session.state.permissions) == (not allowed), "a denial is an event that can be listed"


async def asked(session: Session, answer: str, reason: str = "") -> None:
    await session.chat.submit("Look")
    await until(lambda: session.state.asked is not None, "the question")
    question = session.state.asked
    assert question is not None and '"pattern": "x"' in question.preview
    await session.chat.permit(question.call, answer, reason)
    await session.chat.finished()


@pytest.mark.parametrize("answer", ["once", "session", "always", "no"])
async def test_an_answer_counts_as_long_as_it_says_and_for_exactly_what_was_shown(
    workspace: Path, answer: str
) -> None:
    other = calls(("search_text", {"pattern": "x", "glob": "*.py"}))
    replies: list[Any] = [calls(SEARCH), DONE, calls(SEARCH), DONE, other, DONE]
    rules = ("permissions.ask=search_text",)
    async with open_session(
        workspace, replies, protocol="tools", overrides=rules, interactive=True
    ) as session:
        await asked(session, answer, "not here")
        done = answer != "no"
        assert ("a.py:1" in result(session)) is done
        assert ("not allow it: not here" in result(session)) is not done
        if answer in ("session", "always"):
            await turn(session)  # nobody is asked again about the same
            assert "a.py:1" in result(session)
            await session.chat.revoke(session.state.permissions[-1].digest)
            assert session.state.permissions == ()
        model_of(session).replies[:] = replies[2:4]
        await asked(session, "no")
        model_of(session).replies[:] = replies[4:]
        await session.chat.submit("Look")
        await until(lambda: session.state.asked is not None, "a question about other arguments")
        await session.chat.stop()
        assert session.state.asked is None
    if answer == "always":
        async with open_session(
            workspace, replies[:2], protocol="tools", overrides=rules, interactive=True
        ) as session:
            await asked(session, "no")  # it was revoked for good


async def test_what_is_allowed_always_holds_in_a_later_session(workspace: Path) -> None:
    rules = ("permissions.ask=search_text",)
    async with open_session(
        workspace, [calls(SEARCH), DONE], protocol="tools", overrides=rules, interactive=True
    ) as session:
        await asked(session, "always")
    async with open_session(
        workspace, [calls(SEARCH), DONE], protocol="tools", overrides=rules, interactive=True
    ) as session:
        await turn(session)
        assert "a.py:1" in result(session)


async def test_a_rule_counts_for_what_a_pattern_finds_too(workspace: Path) -> None:
    read = (
        "read_files",
        {"actions": [{"type": "file", "name": "All", "patterns": ["**/*.py"], "all": True}]},
    )
    everywhere = ("search_text", {"pattern": "x"})
    rules = ("permissions.deny=read_files(private/*),search_text(private/*)",)
    async with open_session(
        workspace, [calls(read, everywhere), DONE], protocol="tools", overrides=rules
    ) as session:
        await turn(session)
        told = str(model_of(session).requests[-1].messages)
        assert "x = 1" in told and "x = 2" not in told and "private/k.py is not shown to you" in told


def test_a_rule_without_a_pattern_is_about_the_call_and_not_about_paths() -> None:
    assert refusal_of_path(PermissionSettings(ask=("read_files",)), "read_files", "a.py") == ""
    assert "denies it" in refusal_of_path(
        PermissionSettings(deny=("read_files(*.pem)",)), "read_files", "k/a.pem"
    )


def test_a_workspace_may_only_add_to_what_is_denied_asked_or_off() -> None:
    below = dict.fromkeys(
        ("permissions.deny", "permissions.ask", "permissions.allow", "tools.off"), ("mine",)
    )
    layer = narrowed(Layer("there", dict.fromkeys(below, ("theirs",)), ()), below)
    assert layer.values == dict.fromkeys(
        ("permissions.deny", "permissions.ask", "tools.off"), ("mine", "theirs")
    )
    assert [fault.key for fault in layer.faults] == ["permissions.allow"]


@pytest.mark.parametrize(
    ("acts", "by", "counts"), [(True, "nobody", True), (False, "nobody", False), (True, "rule", False)]
)
def test_headless_only_what_would_have_written_or_run_something_counts(
    acts: bool, by: Any, counts: bool
) -> None:
    event: Event = PermissionDecided(PermissionDecision("d", "probe", "it", acts=acts, by=by))
    undone = UnfinishedWork()
    undone.on_event(event, State())
    assert bool(undone.calls) is counts


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "  git push origin",
        "/usr/bin/git push",
        "g'i't \"push\"",
        "git   push",
        "cd x && git push",
        "true;git push",
        "(git push)",
        "A=1 git push",
        "true\ngit push",
    ],
)
def test_a_denied_command_is_found_however_it_is_written(command: str) -> None:
    assert _fits("run_command(git push*)", "run_command", _as_words((command,)))


@pytest.mark.parametrize("command", ["git status", "echo 'git push'", "gitk push", "git 'unclosed"])
def test_another_command_is_not_denied(command: str) -> None:
    assert not _fits("run_command(git push*)", "run_command", _as_words((command,)))


PROBE = Tool(
    name="probe",
    key="probes",
    words="For tests.",
    entry={"type": "object"},
    example={},
    place=99,
    run=SEARCH_TOOL.run,
    acts=True,
    targets=lambda call: tuple(str(entry) for entry in call.entries),
    line=lambda call: " ".join(map(str, call.entries)),
)


def permission_bench(
    answers: list[Any] | None = None, only: Any = (), hooks: BeforeCall | None = None, **rules: Any
) -> Bench:
    async def nothing(*words: Any) -> Any:
        raise AssertionError(words)

    async def answered(*words: Any) -> BeforeCall:
        return hooks or BeforeCall()

    chosen = replace(Settings(), permissions=PermissionSettings(**rules), mode="auto")
    hooked = CallHooks(before=nothing, asked=answered, after=nothing, compacting=nothing) if hooks else None
    fields = {"only": only, "workspace": SimpleNamespace(root=Path("/work"))}
    return Bench(answers=answers, settings=chosen, calls=SessionCalls(hooks=hooked), fields=fields)


@pytest.mark.parametrize(
    ("rules", "hooked", "answers", "hooks", "allowed", "by"),
    [
        ({}, BeforeCall(), None, None, True, ""),
        ({"ask": ("probe",)}, BeforeCall(), None, None, False, "nobody"),
        ({"ask": ("probe",)}, BeforeCall(), ["once"], None, True, "person"),
        ({"ask": ("probe",)}, BeforeCall(), ["no"], None, False, "person"),
        ({"ask": ("probe",)}, BeforeCall(), ["unknown"], None, False, "person"),
        ({"deny": ("probe",)}, BeforeCall(verdict="allow"), ["once"], None, False, "rule"),
        ({"deny": ("prob*",), "allow": ("probe",)}, BeforeCall(), ["once"], None, False, "rule"),
        ({}, BeforeCall(refused="no"), None, None, False, ""),
        ({}, BeforeCall(verdict="ask"), ["once"], None, True, "person"),
        ({}, BeforeCall(verdict="ask"), None, None, False, "nobody"),
        ({"ask": ("probe",)}, BeforeCall(verdict="allow"), None, None, False, "nobody"),
        ({"ask": ("probe",)}, BeforeCall(), ["once"], BeforeCall(refused="why"), False, "hook"),
        ({"ask": ("probe",)}, BeforeCall(), ["no"], BeforeCall(verdict="allow"), False, "person"),
        ({}, BeforeCall(verdict="ask"), ["no"], BeforeCall(verdict="allow"), True, ""),
    ],
)
async def test_rules_hooks_and_the_person_decide_in_this_order(
    rules: dict[str, Any],
    hooked: BeforeCall,
    answers: list[Any] | None,
    hooks: BeforeCall | None,
    allowed: bool,
    by: str,
) -> None:
    bench = permission_bench(answers, hooks=hooks, **rules)
    refused = await permitted(bench.context, PROBE, Invocation("c", "probe", ("x",)), bench.emit, hooked)
    assert (refused is None) is allowed
    assert refused is None or (
        refused.denied and not refused.ok and refused.text.startswith("Error: not done:")
    )
    decided = [event.decision for event in bench.events if isinstance(event, PermissionDecided)]
    assert [one.by for one in decided] == ([by] if by else [])
    assert all((one.answer != "no") is allowed for one in decided)


@pytest.mark.parametrize(
    ("only", "entries", "allowed"),
    [
        ((), ("x",), True),
        (({"probe": ()},), ("x",), True),
        (({"pro*": ("x*",)},), ("x1", "x2"), True),
        (({"probe": ("x*",)},), ("x1", "y"), False),
        (({"other": ()},), ("x",), False),
        (({"probe": ()}, {"other": ()}), ("x",), False),
        (({"probe": ("x",), "prob?": ()},), ("y",), True),
    ],
)
def test_a_sub_task_uses_the_tools_of_its_agents(only: Any, entries: tuple[str, ...], allowed: bool) -> None:
    context = permission_bench(only=only).context
    verdict, rule = verdict_of(context, PROBE, Invocation("c", "probe", entries), CallContext())
    assert (verdict, bool(rule)) == (("allow", False) if allowed else ("deny", True))


def test_a_pattern_of_an_agent_covers_simple_commands_only() -> None:
    context = permission_bench(only=({"probe": ("git *",)},)).context
    exact = dataclasses.replace(PROBE, exact=True)
    for command, verdict in (("git log", "allow"), ("git log; rm x", "deny"), ("git log > x", "deny")):
        assert verdict_of(context, exact, Invocation("c", "probe", (command,)), CallContext())[0] == verdict


@pytest.mark.parametrize(
    ("only", "names", "expected"),
    [
        ((), ("probe", "call_tool"), (True, True)),
        (({"probe": ()},), ("probe", "call_tool"), (True, False)),
        (({"time__now": ()},), ("probe", "describe_tool"), (False, True)),
        (({"probe": ()}, {"other": ()}), ("probe", "other"), (False, False)),
    ],
)
def test_the_tools_that_agents_have(only: Any, names: tuple[str, ...], expected: tuple[bool, ...]) -> None:
    assert tuple(has_tool(only, name) for name in names) == expected


def test_lasting_approvals_are_kept_and_forgotten_one_by_one(tmp_path: Path) -> None:
    assert stored_approvals(tmp_path) == set()
    store_approval(tmp_path, "a")
    store_approval(tmp_path, "b")
    assert stored_approvals(tmp_path) == {"a", "b"}
    forget_approval(tmp_path, "a")
    forget_approval(tmp_path, "c")
    assert stored_approvals(tmp_path) == {"b"}
    (tmp_path / STORE).write_text("{")
    assert stored_approvals(tmp_path) == set()


def test_an_approval_covers_what_was_shown_or_the_session() -> None:
    context = permission_bench().context
    one, other = (Invocation("c", "probe", (), arguments=text) for text in ("1", "2"))
    digests = {
        digest_of(context, PROBE, call, found)
        for call in (one, other)
        for found in (CallContext(), CallContext(covers="landlock"))
    }
    assert len(digests) == 4
    session = CallContext(remembered="session")
    assert digest_of(context, PROBE, one, session) == digest_of(context, PROBE, other, session)


@pytest.mark.parametrize(
    ("remembered", "answers", "counted"),
    [
        ("exactly", ("once", "session", "always", "no"), (False, True, True, False)),
        ("session", ("once", "session", "always", "no"), (True, True, True, False)),
        ("never", ("once", "session", "always", "no"), (False, False, False, False)),
    ],
)
def test_how_long_an_answer_counts(remembered: Any, answers: Any, counted: tuple[bool, ...]) -> None:
    before = [PermissionDecided(PermissionDecision(answer, "probe", "", answer=answer)) for answer in answers]
    found = approved(Bench(before).context, CallContext(remembered=remembered))
    assert tuple(answer in found for answer in answers) == counted

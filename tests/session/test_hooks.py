"""Hooks: commands of the person that run at events, with the fields and answers that existing scripts use."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.command_line import run_here
from support.recordings import recorded
from support.sessions import calls, model_of, open_session, reply
from support.trees import until

from tui_agent.errors import EditFailed, RateLimited, SessionError
from tui_agent.extensions import trusted
from tui_agent.extensions.hooks import switch
from tui_agent.model.parts import text_of
from tui_agent.session import hooks
from tui_agent.session.hook_transcript import HookTranscript
from tui_agent.session.session import Session
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.store.events import PermissionAsked
from tui_agent.store.state import ChatMessage

SCRIPT = 'cat >> "$CLAUDE_PROJECT_DIR/../seen"; echo >> "$CLAUDE_PROJECT_DIR/../seen"'


def write(**hooks: Mapping[str, object]) -> None:
    """Hooks of the person's settings."""
    folder = user_folders().config
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, fields in hooks.items():
        lines += [f"[hooks.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]
    (folder / "settings.toml").write_text("\n".join(lines))


def seen(work: Path) -> list[dict]:
    path = work.parent / "seen"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def notices(session: Session) -> str:
    return "\n".join(notice.text for notice in session.state.notices.items)


async def turn(session: Session, text: str = "change a.py") -> None:
    await session.chat.submit(text)
    await session.chat.finished()


def sent(session: Session) -> str:
    return "\n".join(text_of(message) for message in model_of(session).requests[-1].messages)


def refuse(session: Session) -> list[str]:
    """Answers each question with no; returns the tools that were asked about, as they come."""
    asked: list[str] = []
    given: list[asyncio.Task[None]] = []

    def answer(event: object, state: object) -> None:
        if isinstance(event, PermissionAsked):
            asked.append(event.tool)
            given.append(asyncio.create_task(session.chat.permit(event.call, "no")))

    session.subscribe(answer)
    return asked


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("one = 1\n")
    return folder


CHANGE = {"filePath": "a.py", "edits": [{"search": "one = 1", "replace": "one = 2"}]}
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "ChangesProposed")


async def test_every_event_has_the_documented_fields(work: Path) -> None:
    names = (*EVENTS, "BeforeApply", "Applied", "Stop")
    others = {
        "other_file": {"event": "PostToolUse", "rule": "Edit(*.md)", "command": SCRIPT},
        "start": {"event": "SessionStart", "command": "echo 'no network' >&2; exit 2"},
    }
    write(**{name: {"event": name, "command": SCRIPT} for name in names}, **others)
    async with open_session(work, [reply(fileChanges=[CHANGE])]) as session:
        await turn(session)
        await session.review.apply()
        await session.hooks.settled()
        assert "start: no network" in notices(session)
    assert len(seen(work)) == len(names)
    found = {one["hook_event_name"]: one for one in seen(work)}
    assert list(found) == [*EVENTS[:3], "ChangesProposed", "Stop", "BeforeApply", "Applied", "PostToolUse"]
    for one in found.values():
        assert one["session_id"] == session.state.session.id and one["cwd"] == str(work)
        assert one["permission_mode"] == "default"
    assert found["SessionStart"]["source"] == "startup"
    assert found["UserPromptSubmit"]["prompt"] == "change a.py"
    edit = {"file_path": str(work / "a.py"), "old_string": "one = 1", "new_string": "one = 2"}
    assert (found["PreToolUse"]["tool_name"], found["PreToolUse"]["tool_input"]) == ("Edit", edit)
    assert found["Stop"]["stop_hook_active"] is False
    assert found["Applied"]["files"] == [str(work / "a.py")]
    whole = {"old_string": "one = 1\n", "new_string": "one = 2\n"}
    assert found["PostToolUse"]["tool_input"] == {"file_path": str(work / "a.py"), **whole}
    assert "+one = 2" in found["BeforeApply"]["changes"][0]["diff"]


async def test_a_blocked_message_never_reaches_the_model(work: Path) -> None:
    command = "grep -q hunter2 && { echo 'no passwords' >&2; exit 2; }; echo 'Branch: main'"
    write(guard={"event": "UserPromptSubmit", "command": command})
    async with open_session(work, [reply()]) as session:
        await turn(session, "my password is hunter2")
        assert "no passwords" in session.state.turn.error and not model_of(session).requests
        await turn(session, "hello")
        assert "From the hook guard:\nBranch: main" in sent(session)
        assert "hunter2" not in sent(session)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo 'not this file' >&2; exit 2", "not this file"),
        ("""echo '{"decision": "block", "reason": "by decision"}'""", "by decision"),
        (
            """echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "denied"}}'""",
            "denied",
        ),
    ],
)
async def test_a_call_is_refused_with_the_reason(work: Path, command: str, reason: str) -> None:
    write(guard={"event": "PreToolUse", "matcher": "Edit|Write", "command": command})
    change = ("propose_changes", {"fileChanges": [CHANGE]})
    search = ("search_text", {"pattern": "one"})
    async with open_session(work, [calls(change, search), calls()], protocol="tools") as session:
        await turn(session)
        assert not session.state.review.changes
        assert reason in sent(session) and "a.py" in sent(session)


async def test_a_hook_that_is_run_after_a_tool_speaks_to_the_model(work: Path) -> None:
    context = json.dumps({"hookSpecificOutput": {"additionalContext": "remember the tests"}})
    write(after={"event": "PostToolUse", "matcher": "Grep", "command": f"echo '{context}'"})
    search = ("search_text", {"pattern": "one"})
    async with open_session(work, [calls(search), calls(text="Done.")], protocol="tools") as session:
        await turn(session)
        assert "From the hook after:\nremember the tests" in sent(session)


async def test_a_hook_may_ask_and_allow(work: Path) -> None:
    """`ask` beats an `allow` rule, and `allow` takes the place of the question."""
    verdict = """echo '{"hookSpecificOutput": {"permissionDecision": "%s"}}'"""
    command = ("run_command", {"command": "echo hello"})
    write(guard={"event": "PreToolUse", "matcher": "Bash", "command": verdict % "ask"})
    rule = ('permissions.allow=["run_command(echo hello)"]',)
    async with open_session(
        work, [calls(command), calls()], protocol="tools", overrides=rule, interactive=True
    ) as session:
        asked = refuse(session)
        await turn(session)
        assert asked == ["run_command"]
    write(guard={"event": "PreToolUse", "matcher": "Bash", "command": verdict % "allow"})
    always = ("commands.ask=always",)
    async with open_session(work, [calls(command), calls()], protocol="tools", overrides=always) as session:
        await turn(session)
        assert session.state.commands.results[-1].output == "hello\n"


async def test_a_stop_hook_goes_on_with_the_turn(work: Path) -> None:
    command = """grep -q '"stop_hook_active":true' || { echo 'run the tests' >&2; exit 2; }"""
    write(more={"event": "Stop", "command": command})
    async with open_session(work, [reply(), reply()]) as session:
        await turn(session)
        assert len(model_of(session).requests) == 2 and "The hook more says: run the tests" in sent(session)


async def test_a_stop_hook_that_always_blocks_comes_to_an_end(work: Path) -> None:
    write(more={"event": "Stop", "command": "echo again >&2; exit 2"})
    async with open_session(work, [reply()] * 20) as session:
        await turn(session)
        assert len(model_of(session).requests) == 11 and "turns in a row" in notices(session)


async def test_an_apply_is_refused(work: Path) -> None:
    write(guard={"event": "BeforeApply", "command": "echo 'the release is frozen' >&2; exit 2"})
    async with open_session(work, [reply(fileChanges=[CHANGE])]) as session:
        await turn(session)
        with pytest.raises(SessionError, match="the release is frozen"):
            await session.review.apply()
    assert (work / "a.py").read_text() == "one = 1\n"


async def test_a_hook_that_changes_the_file_makes_the_apply_stale(work: Path) -> None:
    write(format={"event": "BeforeApply", "command": "echo 'two = 2' >> a.py"})
    async with open_session(work, [reply(fileChanges=[CHANGE])]) as session:
        await turn(session)
        with pytest.raises(EditFailed, match=r"a\.py changed while a hook ran"):
            await session.review.apply()
    assert (work / "a.py").read_text() == "one = 1\ntwo = 2\n"


async def test_changes_that_a_hook_holds_back_wait_in_mode_auto(work: Path) -> None:
    write(guard={"event": "ChangesProposed", "command": "echo 'look at it' >&2; exit 2"})
    check = ('checks.commands=[{"name": "true", "command": "true"}]', "mode=auto")
    async with open_session(work, [reply(fileChanges=[CHANGE])], overrides=check) as session:
        await turn(session)
        assert session.state.review.open and "look at it" in notices(session)
    assert (work / "a.py").read_text() == "one = 1\n"


HOSTILE = {
    "sleep 1000": "was ended after its time limit",
    "trap '' TERM INT HUP; while :; do :; done": "was ended after its time limit",
    "yes | head -c 100000000": "was ended because it printed more than 1 MB",
    "yes | head -c 100000000 >&2": "was ended because it printed more than 1 MB",
    "kill -SEGV $$": "ended by signal 11",
    "exit 3": "ended with status 3",
    "echo '{\"decision\": 7}'": "printed JSON that cannot be used",
    "echo '{broken'": "printed JSON that cannot be used",
    "printf '\\377\\376\\033[2J' >&2; exit 1": "ended with status 1",
    "/no/such/program": "ended with status 127",
}


@pytest.mark.parametrize(("command", "why"), HOSTILE.items())
async def test_a_hook_that_fails_is_a_notice_and_blocks_nothing(work: Path, command: str, why: str) -> None:
    write(bad={"event": "PreToolUse", "command": command, "timeout": 2 if "time limit" in why else 30})
    async with open_session(work, [reply(fileChanges=[CHANGE])]) as session:
        await turn(session)
        assert len(session.state.review.open) == 1
        assert f"The hook bad {why}" in notices(session) and "\x1b" not in notices(session)


async def test_what_a_hook_leaves_running_delays_nothing(work: Path) -> None:
    command = "sleep 1000 & echo $! > ../left"
    write(bad={"event": "UserPromptSubmit", "command": command, "timeout": 500})
    async with open_session(work, [reply()]) as session:
        await turn(session)
        assert session.state.turn.ok
    os.kill(int((work.parent / "left").read_text()), 9)


async def test_a_turn_that_waits_for_a_hook_can_be_stopped(work: Path) -> None:
    command = "echo $$ > ../pid; exec sleep 1000"
    write(slow={"event": "Stop", "command": command, "timeout": 600})
    async with open_session(work, [reply()]) as session:
        await session.chat.submit("hello")
        await until(lambda: (work.parent / "pid").exists() and (work.parent / "pid").read_text().strip())
        await session.chat.stop()
        pid = int((work.parent / "pid").read_text())

        def has_ended() -> bool:
            try:
                return "Z" in Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                return True

        await until(has_ended)


async def test_a_question_is_announced(work: Path) -> None:
    write(tell={"event": "Notification", "matcher": "permission_prompt", "command": SCRIPT})
    command = ("run_command", {"command": "echo hello"})
    async with open_session(
        work,
        [calls(command), calls()],
        protocol="tools",
        overrides=("commands.ask=always",),
        interactive=True,
    ) as session:
        refuse(session)
        await turn(session)
        await session.hooks.settled()
    (one,) = seen(work)
    assert one["notification_type"] == "permission_prompt" and "echo hello" in one["message"]


async def test_a_session_without_hooks_reads_and_starts_nothing(work: Path) -> None:
    async with open_session(work, [reply()]) as session:
        await turn(session)
        assert session.hooks.calls is None and session.hooks.all == ()


async def test_a_script_that_changes_during_the_session_is_not_run(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person/.claude").mkdir(parents=True)
    hook = {"type": "command", "command": "sh ./check.sh"}
    table = {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    (tmp_path / "person/.claude/settings.json").write_text(json.dumps(table))
    (work / "check.sh").write_text("echo ran >> ../ran\n")
    switch(work, user_folders(), "home.UserPromptSubmit-1", True)
    async with open_session(work, [reply(), reply()]) as session:
        await turn(session, "hello")
        assert (tmp_path / "ran").read_text() == "ran\n"
        (work / "check.sh").write_text("echo other >> ../ran\n")
        await turn(session, "hello again")
        assert session.state.turn.ok and (tmp_path / "ran").read_text() == "ran\n"
        assert "has changed since you switched it on, and did not run" in notices(session)


async def test_a_call_of_a_sub_task_has_the_same_hooks(work: Path) -> None:
    command = 'pwd > "$CLAUDE_PROJECT_DIR/../where"; echo no >&2; exit 2'
    write(guard={"event": "PreToolUse", "matcher": "Bash", "command": command})
    replies = [calls(("run_command", {"command": "echo hello"})), calls(text="Done.")]
    async with open_session(work, replies, protocol="tools") as session:
        await session.subtasks.add("look", "Look at a.py")
        await session.subtasks.run("look")
        await session.subtasks.settled()
        assert "the hook guard blocked it: no" in sent(session)
    assert (work.parent / "where").read_text().strip() != str(work)


def script(work: Path, body: str) -> str:
    """The command of a Python script, written as scripts for the most used agent are."""
    path = work.parent / "hook.py"
    path.write_text(f"import json, os, sys\nevent = json.load(sys.stdin)\n{body}")
    return shlex.join([sys.executable, str(path)])


REWRITE = """
if event["tool_name"] == "Bash":
    new = {**event["tool_input"], "command": event["tool_input"]["command"].replace("secret", "public")}
    print(json.dumps({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": new}}))
"""


async def test_a_hook_changes_the_input_of_a_command_and_the_rules_see_the_changed_one(work: Path) -> None:
    write(guard={"event": "PreToolUse", "command": script(work, REWRITE)})
    command = ("run_command", {"command": "echo secret"})
    rules = ('permissions.ask=["run_command(echo secret)"]',)
    async with open_session(work, [calls(command), calls()], protocol="tools", overrides=rules) as session:
        await turn(session)
        assert session.state.commands.results[-1].output == "public\n"
        assert "A hook changed the input of this call" in sent(session) and "echo public" in sent(session)
        assert "The hook guard changed the input of Bash" in notices(session)
    rules = ('permissions.deny=["run_command(echo public)"]',)
    async with open_session(work, [calls(command), calls()], protocol="tools", overrides=rules) as session:
        await turn(session)
        assert not session.state.commands.results and "denies it" in sent(session)


async def test_a_hook_changes_the_content_of_a_proposed_file(work: Path) -> None:
    body = """
new = {**event["tool_input"], "content": "# checked\\n" + event["tool_input"]["content"]}
print(json.dumps({"hookSpecificOutput": {"updatedInput": new}}))
"""
    write(header={"event": "PreToolUse", "matcher": "Write", "command": script(work, body)})
    new = {"filePath": "b.py", "content": "two = 2\n"}
    async with open_session(work, [reply(fileChanges=[new])]) as session:
        await turn(session)
        change = session.state.review.changes[-1]
        assert session.core.blobs.get_text(change.new) == "# checked\ntwo = 2\n"


async def test_changed_input_that_fits_no_call_is_asked_about(work: Path) -> None:
    body = """
answer = {"permissionDecision": "allow", "updatedInput": {"pattern": "x"}}
print(json.dumps({"hookSpecificOutput": answer}))
"""
    write(guard={"event": "PreToolUse", "matcher": "Grep", "command": script(work, body)})
    search = ("search_text", {"pattern": "one"})
    async with open_session(work, [calls(search), calls()], protocol="tools", interactive=True) as session:
        asked = refuse(session)
        await turn(session)
        assert asked == ["search_text"] and "is not used for Grep" in notices(session)


async def test_a_script_reads_the_conversation_from_its_transcript(work: Path) -> None:
    """As scripts that speak or log replies do: the last line of the assistant, found in the file."""
    body = """
found = []
with open(event["transcript_path"]) as file:
    for line in file:
        entry = json.loads(line)
        content = entry["message"]["content"]
        texts = [content] if isinstance(content, str) else [one.get("text") for one in content]
        found.append([entry["type"], *filter(None, texts)])
with open(os.environ["CLAUDE_PROJECT_DIR"] + "/../heard", "a") as out:
    out.write(json.dumps([found, event["last_assistant_message"]]) + chr(10))
"""
    write(speak={"event": "Stop", "command": script(work, body)})
    replies = [reply("First."), reply("Second.", fileChanges=[CHANGE]), reply("Third.")]
    async with open_session(work, replies) as session:
        for text in ("hello", "change it", "and now?"):
            await turn(session, text)
        folder = session.core.storage.folder
        assert (folder / "transcript.jsonl").stat().st_mode & 0o777 == 0o600
    heard = [json.loads(line) for line in (work.parent / "heard").read_text().splitlines()]
    assert [last for _, last in heard] == ["First.", "Second.", "Third."]
    said = [line for line in heard[-1][0] if len(line) > 1]
    assert said == [
        ["user", "hello"],
        ["assistant", "First."],
        ["user", "change it"],
        ["assistant", "Second."],
        ["user", "and now?"],
        ["assistant", "Third."],
    ]


async def test_the_start_of_a_session_and_its_end_frame_a_summary(work: Path) -> None:
    names = ("SessionStart", "PreCompact", "SessionEnd", "Stop")
    write(**{name: {"event": name, "command": SCRIPT} for name in names})
    async with open_session(work, [reply(), reply(), reply("A summary.")]) as session:
        await turn(session, "hello")
        await turn(session, "again")
        await session.chat.compact()
        await session.chat.finished()
        await session.hooks.settled()
    keys = ("source", "trigger", "reason", "last_assistant_message")
    found = [(one["hook_event_name"], *(one[key] for key in keys if key in one)) for one in seen(work)]
    assert found == [
        ("SessionStart", "startup"),
        ("Stop", "Done."),
        ("Stop", "Done."),
        ("PreCompact", "manual"),
        ("SessionStart", "compact"),
        ("SessionEnd", "other"),
    ]


async def test_a_hook_blocks_a_summary(work: Path) -> None:
    write(keep={"event": "PreCompact", "matcher": "manual", "command": "echo 'not now' >&2; exit 2"})
    async with open_session(work, [reply(), reply()]) as session:
        await turn(session, "hello")
        await turn(session, "again")
        before = session.state.conversation.messages
        await session.chat.compact()
        await session.chat.finished()
        assert session.state.conversation.messages == before
        assert "the hook keep blocked it: not now" in notices(session)
        assert len(model_of(session).requests) == 2


SLOWLY = {"event": "PostToolUse", "command": f"sleep 0.3; {SCRIPT}"}


async def test_a_session_that_ends_waits_for_hooks_after_an_apply(work: Path) -> None:
    write(format=SLOWLY)
    async with open_session(work, [reply(fileChanges=[CHANGE])]) as session:
        await turn(session)
        await session.review.apply()
    assert [one["tool_name"] for one in seen(work)] == ["Edit"]


@pytest.mark.parametrize("at_once", [True, False])
def test_commands_wait_for_hooks_after_an_apply(
    work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    monkeypatch.setattr(hooks, "ENDS_WITHIN", 0.0)
    write(format=SLOWLY)
    replay = recorded(work.parent / "replay", ("change a.py", json.dumps(reply(fileChanges=[CHANGE]))))
    words = ["--replay", str(replay), "--planner-model", "none", "--apply", "all" if at_once else "none"]
    assert run_here(capfd, ["run", "--workspace", str(work), *words, "change a.py"]).status == 0
    if not at_once:
        assert run_here(capfd, ["apply", "--workspace", str(work), "--session", "last"]).status == 0
    assert [one["tool_name"] for one in seen(work)] == ["Edit"]


async def test_a_hook_at_the_end_that_hangs_holds_nothing_up(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "ENDS_WITHIN", 0.2)
    write(slow={"event": "SessionEnd", "command": "sleep 1000"})
    begun = time.monotonic()
    async with open_session(work, [reply()]) as session:
        await turn(session, "hello")
    assert time.monotonic() - begun < 15


async def test_a_failed_call_has_an_event_of_its_own(work: Path) -> None:
    write(failed={"event": "PostToolUseFailure", "matcher": "WebFetch|Bash|Read", "command": SCRIPT})
    async with open_session(
        work, [calls(("run_command", {"command": "exit 3"})), calls()], protocol="tools"
    ) as session:
        await turn(session)
    assert [(one["tool_name"], one["is_interrupt"]) for one in seen(work)] == [("Bash", False)]
    assert "3" in seen(work)[0]["error"]


@pytest.mark.parametrize(
    "updated",
    [
        '{"command": 7}',
        '{"command": "echo \\u0000"}',
        "{}",
        "7",
        '[{"command": "echo no"}]',
        '{"file_path": "/etc/passwd"}',
        '{"command": "' + "x" * 100_000 + '"}',
        '{"command": "' + "x" * 900_000 + '"}',
    ],
    ids=lambda text: f"{text[:20]} {len(text)}",
)
async def test_changed_input_of_a_wrong_form_runs_nothing_that_was_not_asked_about(
    work: Path, updated: str
) -> None:
    (work.parent / "answer").write_text(
        '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": ' + updated + "}}"
    )
    write(odd={"event": "PreToolUse", "matcher": "Bash", "command": f"cat {work.parent}/answer"})
    command = ("run_command", {"command": "echo original"})
    rules = ('permissions.ask=["run_command"]',)
    async with open_session(
        work, [calls(command), calls(text="Done.")], protocol="tools", overrides=rules, interactive=True
    ) as session:
        asked = refuse(session)
        await turn(session)
        asks = len(updated) < 900_000  # a longer command is refused
        assert asked == ["run_command"] * asks and not session.state.commands.results
        assert session.state.turn.ok, session.state.turn.error


async def test_the_transcript_follows_no_link_and_a_rewound_conversation(work: Path) -> None:
    write(speak={"event": "Stop", "command": SCRIPT})
    other = work.parent / "other"
    other.write_text("mine\n")
    async with open_session(work, [reply("First.")]) as session:
        (session.core.storage.folder / "transcript.jsonl").symlink_to(other)
        await turn(session, "hello")
    assert other.read_text() == "mine\n" and seen(work)[0]["transcript_path"] == ""

    transcript = HookTranscript(work.parent / "t", work)
    state = session.state
    texts = [ChatMessage(n, "person", n, f"text {n}") for n in range(1, 5)]
    for messages in (texts[:2], texts[:3], texts[:1], [texts[0], ChatMessage(2, "person", 2, "instead")]):
        chat = replace(state.chat, messages=tuple(messages))
        transcript.write(replace(state, chat=chat))
        lines = [json.loads(line)["message"]["content"] for line in transcript.path.read_text().splitlines()]
        assert lines == [message.text for message in messages]


@pytest.mark.parametrize(
    ("printed", "asked", "ran"),
    [
        ({"behavior": "allow"}, [], True),
        ({"behavior": "deny", "message": "not on a Friday"}, [], False),
        ({"behavior": "allow", "updatedInput": {"command": "rm -r ~"}}, ["run_command"], False),
        ({"behavior": "perhaps"}, ["run_command"], False),
    ],
)
async def test_a_hook_answers_before_the_user_is_asked(
    work: Path, printed: dict, asked: list[str], ran: bool
) -> None:
    answer = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": printed}}
    command = f"{SCRIPT}; printf %s {shlex.quote(json.dumps(answer))}"
    write(
        early={"event": "PreToolUse", "matcher": "^Ba", "command": 'echo \'{"decision": "ask"}\''},
        answer={"event": "PermissionRequest", "matcher": "Bash", "command": command},
    )
    run = calls(("run_command", {"command": "echo done-here"}))
    async with open_session(work, [run, calls()], protocol="tools", interactive=True) as session:
        questions = refuse(session)
        await turn(session)
        assert questions == asked
        results = sent(session)
        assert ("done-here" in results) is ran
        assert ("not on a Friday" in results) is ("message" in printed)
    fields = seen(work)[0]
    assert fields["tool_name"] == "Bash" and fields["tool_input"]["command"] == "echo done-here"
    assert fields["permission_suggestions"] == [] and "tool_use_id" not in fields


async def test_a_hook_answers_no_question_of_a_rule_and_none_of_a_workspace_allows(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    allow = {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    entry = {"type": "command", "command": f"printf %s {shlex.quote(json.dumps(allow))}"}
    (work / ".claude").mkdir()
    groups = {"PermissionRequest": [{"hooks": [entry]}]}
    (work / ".claude/settings.json").write_text(json.dumps({"hooks": groups}))
    trust.trust(work, user_folders(), trusted.brought(work, user_folders()))
    switch(work, user_folders(), "project.PermissionRequest-1", True)
    run = calls(("run_command", {"command": "echo one"}))
    folder = user_folders().config
    folder.mkdir(parents=True, exist_ok=True)
    for more in (
        "",
        f"[hooks.mine]\nevent = 'PermissionRequest'\ncommand = {json.dumps(entry['command'])}\n",
    ):
        (folder / "settings.toml").write_text(f"[permissions]\nask = ['run_command']\n{more}")
        async with open_session(work, [run, calls()], protocol="tools", interactive=True) as session:
            questions = refuse(session)
            await turn(session)
            assert questions == ["run_command"]


async def test_a_text_before_a_call_reaches_the_model_with_its_result(work: Path) -> None:
    said = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "Use spaces here."}}
    write(say={"event": "PreToolUse", "command": f"printf %s {shlex.quote(json.dumps(said))}"})
    run = calls(("run_command", {"command": "echo one"}))
    async with open_session(work, [run, calls()], protocol="tools") as session:
        await turn(session)
        assert "Use spaces here." in sent(session)


async def test_a_rule_narrows_a_hook_to_some_calls(work: Path) -> None:
    write(
        git={"event": "PreToolUse", "rule": "Bash(git *)", "command": SCRIPT},
        python={"event": "PreToolUse", "rule": "Read(*.py)", "command": SCRIPT},
    )
    commands = [("run_command", {"command": one}) for one in ("git status", "true && git log", "echo git")]
    read = ("read_files", {"files": [{"name": "Read", "patterns": ["a.py", "b.md"]}]})
    async with open_session(work, [calls(*commands, read), calls()], protocol="tools") as session:
        await turn(session)
    assert sorted(one["tool_input"].get("command", "") for one in seen(work)) == [
        "",
        "git status",
        "true && git log",
    ]


async def test_nothing_waits_for_a_hook_in_the_background_and_its_answer_comes_later(work: Path) -> None:
    late = work.parent / "go"
    command = f"until [ -e {shlex.quote(str(late))} ]; do sleep 0.05; done; echo 'too long' >&2; exit 2"
    write(slow={"event": "PreToolUse", "background": True, "command": command})
    run = calls(("run_command", {"command": "echo ran"}))
    async with open_session(work, [run, calls(), calls()], protocol="tools") as session:
        await turn(session)
        assert "ran" in sent(session) and "too long" not in sent(session)
        late.touch()
        await session.hooks.settled()
        await turn(session, "and now")
        assert "The hook slow says: too long" in sent(session)


@pytest.mark.parametrize("reason", ["clear", "resume", "prompt_input_exit"])
async def test_the_end_has_its_reason_which_a_matcher_fits(work: Path, reason: hooks.EndReason) -> None:
    write(
        fits={"event": "SessionEnd", "matcher": reason, "command": SCRIPT},
        other={"event": "SessionEnd", "matcher": "logout", "command": SCRIPT},
    )
    async with open_session(work, [reply()]) as session:
        await turn(session, "hello")
        await session.close(reason=reason)
    assert [one["reason"] for one in seen(work)] == [reason]


async def test_a_failed_turn_and_a_summary_have_events(work: Path) -> None:
    write(**{name: {"event": name, "command": SCRIPT} for name in ("StopFailure", "PostCompact")})
    failure = RateLimited("The provider limits requests", "wait a minute")
    async with open_session(work, [reply(), failure, reply("A short summary.")]) as session:
        await turn(session, "hello")
        await turn(session, "again")
        await session.hooks.settled()
        await session.chat.compact()
        await session.chat.finished()
        await session.hooks.settled()
    failed, condensed = seen(work)
    assert failed["error"] == "rate_limit" and "limits requests" in failed["error_details"]
    assert condensed["trigger"] == "manual" and "A short summary." in condensed["compact_summary"]


async def test_a_sub_task_has_events_that_name_its_session_and_agent(work: Path) -> None:
    text = 'echo \'{"hookSpecificOutput": {"additionalContext": "House rules."}}\''
    write(
        begin={"event": "SubagentStart", "matcher": "general-purpose", "command": f"{SCRIPT}; {text}"},
        call={"event": "PreToolUse", "command": SCRIPT},
        end={"event": "SubagentStop", "command": SCRIPT},
        elsewhere={"event": "SubagentStop", "matcher": "reviewer", "command": SCRIPT},
    )
    replies = [calls(("run_command", {"command": "echo hello"})), calls(text="Done.")]
    async with open_session(work, replies, protocol="tools") as session:
        await session.subtasks.add("look", "Look at a.py")
        await session.subtasks.run("look")
        await session.subtasks.settled()
        assert "House rules." in sent(session)
    found = seen(work)
    assert [one["hook_event_name"] for one in found] == ["SubagentStart", "PreToolUse", "SubagentStop"]
    assert {one["session_id"] for one in found} == {session.state.session.id}
    assert {one["agent_type"] for one in found} == {"general-purpose"}
    assert len({one["agent_id"] for one in found}) == 1
    assert found[2]["last_assistant_message"] == "Done."
    assert found[2]["agent_transcript_path"] != found[2]["transcript_path"]
    transcript = await asyncio.to_thread(Path(found[2]["agent_transcript_path"]).read_text)
    assert json.loads(transcript.splitlines()[-1])["message"]["content"][0]["text"] == "Done."

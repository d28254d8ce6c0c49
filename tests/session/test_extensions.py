"""Skills and custom commands in a session: listed once, read on demand, expanded before the model gets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import calls, model_of, open_session, reply

from tui_agent.answers.plans import FileAction
from tui_agent.extensions import trusted
from tui_agent.model import worker
from tui_agent.model.parts import text_of
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "person"
    monkeypatch.setenv("HOME", str(folder))
    (folder / ".claude/commands").mkdir(parents=True)
    skill = folder / ".agents/skills/release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to release.\n---\nBump it.\n")
    (skill / "steps.txt").write_text("first, second\n")
    return folder


async def test_a_skill_is_listed_read_by_the_model_and_kept_for_the_session(
    home: Path, tmp_path: Path
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    read = calls(("use_skill", {"skills": [{"name": "release"}, {"name": "release", "path": "steps.txt"}]}))
    async with open_session(
        root, [read, calls(text="Done."), calls(text="Done.")], protocol="tools"
    ) as session:
        await session.chat.submit("Make a release")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        first, second = model_of(session).requests
        assert (
            "# Skills" in first.messages[0]["content"]
            and "- release: How to release." in first.messages[0]["content"]
        )
        assert "use_skill" in [tool["function"]["name"] for tool in first.tools]
        result = second.messages[-1]["content"]
        assert "Bump it." in result and "first, second" in result
        (home / ".agents/skills/other").mkdir()
        (home / ".agents/skills/other/SKILL.md").write_text("---\ndescription: New.\n---\nNew.\n")
        number = session.state.session.id
    async with open_session(root, [calls(text="Done.")], protocol="tools", session=number) as session:
        await session.chat.submit("/release now")
        await session.chat.finished()
        request = model_of(session).requests[0]
        assert request.tools == first.tools and request.messages[0] == first.messages[0]
        assert "Bump it." in request.messages[-1]["content"] and "now" in request.messages[-1]["content"]
        assert session.state.turn.request == "/release now"


async def test_nothing_configured_adds_nothing_to_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await session.chat.submit("/nothing here")
        await session.chat.finished()
        (request,) = model_of(session).requests
        assert "kill" not in str(request.tools) and "# Skills" not in request.messages[0]["content"]
        assert "/nothing here" in request.messages[-1]["content"]


async def test_a_command_is_expanded_once_with_quoted_arguments_in_its_commands(
    home: Path, tmp_path: Path
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (home / ".claude/commands/fix.md").write_text(
        "---\ndescription: Fix an issue\n---\nFix $1 of $ARGUMENTS.\nOutput: !`printf '%s|' $ARGUMENTS`\n"
    )
    async with open_session(root, ["Done."]) as session:
        await session.chat.submit("/fix '$(touch bad) $2' two")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        sent = model_of(session).requests[0].messages[-1]["content"]
        assert "Fix $(touch bad) $2 of '$(touch bad) $2' two." in sent
        assert "Output: $(touch bad) $2|two|" in sent
        assert (
            session.extensions.names()["fix"] == ("Fix an issue", "command, yours")
            and not (root / "bad").exists()
        )


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('permissions.deny=["run_command(touch *)"]', "the rule run_command(touch *) denies it"),
        ("commands.ask=always", "confirmation is not possible here"),
    ],
)
async def test_rules_for_commands_cover_those_of_a_command_file(
    home: Path, tmp_path: Path, rule: str, why: str
) -> None:
    """As does the question on a machine without views, where the command would run in the real folder."""
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (home / ".claude/commands/go.md").write_text("!`touch a.py`\n")
    async with open_session(root, ["Done."], overrides=(rule,)) as session:
        await session.chat.submit("/go")
        await session.chat.finished()
        assert why in session.state.turn.error and not model_of(session).requests


async def test_a_workspace_counts_after_trust_and_as_it_was_trusted(home: Path, tmp_path: Path) -> None:
    files = {
        ".claude/commands/own.md": "Own text.\n",
        ".claude/skills/own/SKILL.md": "---\ndescription: Own.\n---\nOwn.\n",
    }
    root = repository(tmp_path / "work", files)
    folders = user_folders()
    async with open_session(root, []) as session:
        await session.extensions.ready()
        assert set(session.extensions.names()) == {"release"}
        assert any("untrusted skills (own)" in one.text for one in session.state.notices.items)
    trust.trust(root, folders, trusted.brought(root, folders))
    async with open_session(root, []) as session:
        await session.extensions.ready()
        assert session.extensions.names() == {
            "release": ("How to release.", "skill, yours"),
            "own": ("Own text.", "command, of this workspace"),
            "project:own": ("Own.", "skill, of this workspace"),
        }
    (root / ".claude/commands/own.md").write_text("Another.\n")
    assert trusted.standing(root, folders) == "changed"
    async with open_session(root, []) as session:
        await session.extensions.ready()
        assert session.extensions.names()["own"][0] == "Own."


async def test_a_name_that_is_taken_is_reached_with_its_origin_and_said_once(
    home: Path, tmp_path: Path
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (home / ".claude/commands/diff.md").write_text("Compare $ARGUMENTS.")
    (home / ".claude/commands/release.md").write_text("Send it.")
    async with open_session(root, [calls(text="Done.")] * 4, protocol="tools") as session:
        session.extensions.built_in = frozenset(["diff"])
        for message in ("/user:diff both", "/release", "/user:release", "/diff both"):
            await session.chat.submit(message)
            await session.chat.finished()
        asked = [str(request.messages[-1]["content"]) for request in model_of(session).requests]
        for words, text in zip(("Compare both.", "Send it.", "Bump it.", "/diff both"), asked, strict=True):
            assert words in text
        said = [one.text for one in session.state.notices.items if "taken already" in one.text]
        assert said == [
            "Names that are taken already are reached with their origin: /user:diff, /user:release"
        ]


@pytest.mark.parametrize("protocol", ["tools", "structured"])
async def test_the_first_request_costs_no_token_for_what_is_not_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Hooks cost none either. The tokens are those of a real tokenizer, functions or schema included."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    root = repository(tmp_path / "work", {"a.py": "a\n"})

    async def first() -> list[str]:
        answer = calls(text="Done.") if protocol == "tools" else reply()
        async with open_session(root, [answer], protocol=protocol) as session:
            await session.chat.submit("Hello")
            await session.chat.finished()
            (request,) = model_of(session).requests
            head = [json.dumps(one) for one in (*request.tools, request.schema) if one]
            return [*(text_of(message) for message in request.messages), *head]

    bare = await first()
    assert sum(worker.count_tokens("gpt-4o", bare).counts) <= 2_700
    folder = user_folders().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.toml").write_text('[hooks.one]\nevent = "PreToolUse"\ncommand = "true"\n')
    assert await first() == bare


async def test_a_skill_for_the_user_alone_gets_its_arguments_and_is_not_listed(
    home: Path, tmp_path: Path
) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    folder = home / ".claude/skills/ship"
    folder.mkdir(parents=True)
    fields = "description: Ship.\ndisable-model-invocation: true\nargument-hint: <version> <name>\narguments: [version]"
    words = "Ship $version for $2 ($HOME, $ARGUMENTS[1]); !`echo prose`"
    (folder / "SKILL.md").write_text(f"---\n{fields}\n---\n{words}\n")
    (home / ".agents/skills/release/SKILL.md").write_text(
        "---\ndescription: Costs.\n---\nAsk for $5 first.\n"
    )
    async with open_session(root, [calls(text="Done.")] * 2, protocol="tools") as session:
        await session.chat.submit("/ship 1.2 'Bob B'")
        await session.chat.finished()
        await session.chat.submit("/release now")
        await session.chat.finished()
        first, second = model_of(session).requests
        assert "- release:" in first.messages[0]["content"] and "ship" not in first.messages[0]["content"]
        assert "Ship 1.2 for Bob B ($HOME, Bob B); !`echo prose`" in first.messages[-1]["content"]
        assert "Ask for $5 first." in str(second.messages[-1]["content"])
        assert str(second.messages[-1]["content"]).count("now") == 1
        assert session.extensions.names()["ship"] == ("<version> <name> · Ship.", "skill, yours")


async def test_scripts_of_a_skill_run_in_the_view(home: Path, tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (home / "diary.txt").write_text("private\n")
    linked = tmp_path / "elsewhere/linked"
    own = user_folders().config / "skills/own"
    for folder in (home / ".claude/skills/first", linked, own):
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\ndescription: Scripts.\n---\nRun it.\n")
        (folder / "scripts/go.sh").write_text(f"echo script of {folder.name}\n")
    (home / ".claude/skills/linked").symlink_to(linked)
    (home / ".claude/skills/first/.env").write_text("API_KEY=sk-live-4fj3k2l1m5n6b7v8c9x0\n")
    (own.parents[1] / "settings.toml").write_text('[hooks.one]\nevent = "Stop"\ncommand = "true"\n')
    scripts = [f"sh {folder}/scripts/go.sh" for folder in (home / ".claude/skills/first", linked, own)]
    hidden = home / ".claude/skills/first/.env", home / "diary.txt", own.parents[1] / "settings.toml"
    command = f"{'; '.join(scripts)}; cat {' '.join(map(str, hidden))}"
    run = calls(("run_command", {"command": f"{command}; echo over > {home}/.claude/skills/first/SKILL.md"}))
    async with open_session(root, [run, calls(text="Done.")], protocol="tools") as session:
        await session.chat.submit("Go")
        await session.chat.finished()
        result = str(model_of(session).requests[1].messages[-1]["content"])
    output = result.partition("exit ")[2]
    assert all(f"script of {name}" in output for name in ("first", "linked", "own")), result
    assert "private" not in output and "sk-live" not in output and "Stop" not in output
    assert "Run it." in (home / ".claude/skills/first/SKILL.md").read_text()


COMMAND = """---
allowed-tools: Bash(git status:*), Read
argument-hint: [file] | --all
description: Check code
---
1. **Read the rules** in CLAUDE.md and *package.json* (`tsconfig.json` too), all tests and src/index.ts.
2. Prefer `assert!` over `panic!` and run `npx @scope/tool`.
3. See @README.md, @./docs/guide.md and @docs/missing.md.

```ts
@Injectable()
```
Check $ARGUMENTS.
@~/.claude/flows/check.md
@~/.claude/.credentials.json
@~/diary.txt
"""


async def test_a_published_command_asks_for_no_file_that_its_text_only_names(
    home: Path, tmp_path: Path
) -> None:
    """Its mentions count if they exist, the user's words as always, and its own files are part of the message."""
    files = {"a.py": "a\n", "README.md": "Read\n", "docs/guide.md": "Guide\n"}
    root = repository(tmp_path / "work", files)
    (home / ".claude/commands/check").mkdir()
    (home / ".claude/commands/check/all.md").write_text(COMMAND)
    (home / ".claude/flows").mkdir()
    (home / ".claude/flows/check.md").write_text("The flow.\n")
    (home / ".claude/.credentials.json").write_text("hidden words\n")
    (home / "diary.txt").write_text("private\n")
    async with open_session(root, [calls(text="Done.")], protocol="tools") as session:
        await session.chat.submit("/check:all a.py and b.py")
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        (request,) = model_of(session).requests
        sent = str(request.messages[-1]["content"])
        planned = {
            slot.action.name for slot in session.state.plan.actions if isinstance(slot.action, FileAction)
        }
        assert planned == {"a.py", "b.py", "README.md", "docs/guide.md"}
        assert "Check a.py and b.py." in sent and "## FILE ~/.claude/flows/check.md\nThe flow." in sent
        assert "private" not in sent and "hidden words" not in sent and "`assert!` over `panic!`" in sent
        said = "\n".join(one.text for one in session.state.notices.items)
        assert "~/diary.txt of /check:all is left out" in said and ".credentials.json of /check:all" in said
        assert not session.state.commands.results
        assert session.extensions.names()["check:all"][0] == "[file] | --all · Check code"


async def test_a_command_names_a_configured_model_for_its_turn(home: Path, tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    (home / ".claude/commands/big.md").write_text("---\nmodel: openai/gpt-5\n---\nThink.")
    (home / ".claude/commands/dear.md").write_text("---\nmodel: openai/o9\n---\nThink more.")
    more = ("models.fallbacks=openai/gpt-5",)
    async with open_session(root, [calls(text="Done.")] * 4, protocol="tools", overrides=more) as session:
        for message in ("Hello", "/big", "/dear", "Bye"):
            await session.chat.submit(message)
            await session.chat.finished()
            assert session.state.turn.ok, session.state.turn.error
        models = [request.model for request in model_of(session).requests]
        assert models == ["scripted", "openai/gpt-5", "scripted", "scripted"]
        said = [one.text for one in session.state.notices.items]
        assert any("dear.md: the model openai/o9, which is not configured" in text for text in said)


async def test_files_left_out_for_one_reason_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for number in range(22):
        folder = tmp_path / f"person/.claude/skills/s{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("no front matter")
    (tmp_path / "work").mkdir()
    async with open_session(tmp_path / "work", []) as session:
        await session.extensions.read()
        said = [notice.text for notice in session.state.notices.items]
    names = ", ".join(sorted(f"s{number}/SKILL.md" for number in range(22))[:20])
    assert said == [f"Left out: its front matter has no description: {names} and 2 more"]


@pytest.mark.parametrize("early", [True, False])
async def test_the_word_of_a_file_that_is_left_out_is_not_sent(
    home: Path, tmp_path: Path, early: bool
) -> None:
    (home / ".claude/commands/deploy.md").write_text("---\ndescription: 'open\n---\nDeploy it.\n")
    root = repository(tmp_path / "work", {"a.py": "a\n"})
    async with open_session(root, [reply()]) as session:
        if not early:
            await session.extensions.read()
            assert session.extensions.may_have("deploy")
        await session.chat.submit("/deploy now")
        await session.chat.finished()
        assert not model_of(session).requests
        assert "/deploy cannot be used" in session.state.turn.error
        assert "deploy.md, line 2: a quoted value" in session.state.turn.error

"""Skills and custom commands in a session: listed once, read on demand, expanded before the model gets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import calls, model_of, open_session, reply

from tui_agent.extensions import trusted
from tui_agent.model import counter
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
    assert sum(counter.count("gpt-4o", bare).counts) <= 2_700
    folder = user_folders().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.toml").write_text('[hooks.one]\nevent = "PreToolUse"\ncommand = "true"\n')
    assert await first() == bare


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


async def test_every_file_that_is_left_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for number in range(7):
        folder = tmp_path / f"person/.claude/skills/s{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("no front matter")
    (tmp_path / "work").mkdir()
    async with open_session(tmp_path / "work", []) as session:
        await session.extensions.read()
        said = [notice.text for notice in session.state.notices.items]
    assert len(said) == 6 and said[-1] == "Left out besides, 2 in number: s5/SKILL.md, s6/SKILL.md"


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

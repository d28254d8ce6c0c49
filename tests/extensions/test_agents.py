"""Agent files for sub-tasks: their prompt, model and tools, and files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.extensions import trusted
from tui_agent.extensions.files import places
from tui_agent.extensions.markdown_files import AgentPrompt, read_agents
from tui_agent.extensions.trusted import TrustedFiles
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders

MODELS = ("anthropic/claude-sonnet-4-5", "openai/gpt-5")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "person"
    (folder / ".claude/agents").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work/.claude/agents").mkdir(parents=True)
    return tmp_path / "work"


def write(folder: Path, name: str, *lines: str, body: str = "Review it.") -> None:
    text = "\n".join(["---", "description: Reviews code", *lines, "---", body])
    (folder / f".claude/agents/{name}.md").write_text(text)


def found(work: Path) -> tuple[dict[str, AgentPrompt], str]:
    folders = user_folders()
    agents, problems = read_agents(places("agents", folders, work), TrustedFiles(work, folders), MODELS)
    return {agent.key: agent for agent in agents}, "\n".join(map(str, problems))


def test_names_of_tools_and_models_are_those_of_other_agents(home: Path, work: Path) -> None:
    tools = "tools: Read, Grep, Bash(git log:*), mcp__time, mcp__notes__find, WebSearch"
    write(home, "reviewer", "name: reviewer", tools, "model: sonnet", "disallowedTools: [Edit]")
    agents, problems = found(work)
    agent = agents["reviewer"]
    assert (agent.prompt, agent.model, agent.off) == ("Review it.", MODELS[0], ("propose_changes",))
    assert agent.tools == {
        "read_files": (),
        "search_text": (),
        "run_command": ("git log*",),
        "time__*": (),
        "notes__find": (),
    }
    assert "these tools do not exist here: WebSearch" in problems


@pytest.mark.parametrize("written", ["opus", "anthropic/claude-opus-9", "\x1b[2Jx", "gpt-5; rm"])
def test_a_model_that_is_not_configured_is_left_out_and_named(home: Path, work: Path, written: str) -> None:
    write(home, "reviewer", f"model: {written}")
    agents, problems = found(work)
    assert agents["reviewer"].model == "" and "is not configured" in problems and "\x1b" not in problems


def test_without_a_list_an_agent_has_all_tools(home: Path, work: Path) -> None:
    write(home, "all", "model: inherit")
    write(home, "star", 'tools: "*"')
    write(home, "none", "tools: []")
    agents, problems = found(work)
    assert (agents["all"].tools, agents["star"].tools, agents["none"].tools) == (None, None, {})
    assert not problems


def test_a_workspaces_agents_count_exactly_as_they_are_trusted(home: Path, work: Path) -> None:
    write(home, "reviewer", body="Mine.")
    write(work, "reviewer", body="Theirs.")
    assert list(found(work)[0]) == ["reviewer"]
    trust.trust(work, user_folders(), trusted.brought(work, user_folders()))
    agents, _ = found(work)
    assert (agents["reviewer"].prompt, agents["project:reviewer"].prompt) == ("Mine.", "Theirs.")
    write(work, "reviewer", body="Changed.")
    assert list(found(work)[0]) == ["reviewer"]
    assert trusted.standing(work, user_folders()) == "changed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nname: x\n---\nbody", "no description"),
        ("---\nname: ../x\ndescription: y\n---\n", "is not a name"),
        ("---\ndescription: [a\n---\n", "no closing ]"),
        ("---\ndescription: y\n", "no closing ---"),
        (b"\xff\xfe", "not UTF-8"),
        (b"---\ndescription: y\n---\n" + b"a" * 200_000, "more than"),
    ],
)
def test_a_file_that_cannot_be_an_agent_is_named(home: Path, work: Path, text: str | bytes, why: str) -> None:
    path = home / ".claude/agents/bad.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    agents, problems = found(work)
    assert not agents and why in problems


def test_a_link_out_of_the_folder_is_left_out(home: Path, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("---\ndescription: y\n---\nsecret")
    (work / ".claude/agents/link.md").symlink_to(tmp_path / "secret.md")
    trust.trust(work, user_folders(), trusted.brought(work, user_folders()))
    assert not found(work)[0]

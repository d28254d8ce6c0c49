"""Places of a workspace: their exact text is shown before trust, and afterwards they are the person's to use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.mcp_servers.servers import programs_of
from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import load
from tui_agent.settings.schema import PlaceSettings

THEIRS = """
[[places]]
name = "app"
run = "docker run --rm -v {view}:/app image {command}"
model = true

[[places]]
name = "mine"
run = "sh -c {command}"
"""
OURS = '[[places]]\nname = "mine"\nrun = "ssh host {command}"\ncopy = "rsync"\nmodel = true\n'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".tui-agent").mkdir(parents=True)
    (folder / ".tui-agent" / "settings.toml").write_text(THEIRS)
    folders = user_folders()
    folders.config.mkdir(parents=True, exist_ok=True)
    (folders.config / "settings.toml").write_text(OURS)
    return folder


def test_the_question_shows_their_exact_text(work: Path) -> None:
    assert programs_of(work) == [
        ("place", "app  docker run --rm -v {view}:/app image {command}  (copy = mount)"),
        ("place", "mine  sh -c {command}  (copy = mount)"),
    ]


def test_they_count_after_trust_only_and_replace_none_of_the_persons(work: Path) -> None:
    mine = PlaceSettings("mine", "ssh host {command}", copy="rsync", model=True)
    assert load(user_folders(), work, trusted=False).settings.places == (mine,)
    trust.trust(work, user_folders())
    found = load(user_folders(), work, trusted=trust.is_trusted(work, user_folders()))
    theirs = PlaceSettings("app", "docker run --rm -v {view}:/app image {command}")
    assert found.settings.places == (mine, theirs)  # Not for the model: that is the person's decision.
    assert not found.faults


def test_another_text_is_not_trusted(work: Path) -> None:
    trust.trust(work, user_folders())
    (work / ".tui-agent" / "settings.toml").write_text(THEIRS.replace("image", "other"))
    assert not trust.is_trusted(work, user_folders())


@pytest.mark.parametrize(
    "wrong",
    [
        'name = "a b"',
        'name = "../x"',
        'kind = "other"',
        'copy = "ftp"',
        'run = ""',
        'more = "x"',
        'run = "a\\u0000b"',
    ],
)
def test_a_wrong_place_is_named_with_a_remedy(wrong: str, work: Path) -> None:
    fields = {"name": 'name = "app"', "run": 'run = "sh -c {command}"'}
    key = wrong.partition(" ")[0]
    lines = [line for name, line in fields.items() if name != key]
    (user_folders().config / "settings.toml").write_text("\n".join(["[[places]]", *lines, wrong]))
    loaded = load(user_folders(), work)
    assert loaded.settings.places == ()
    assert "[{name = " in str(loaded.faults[0])

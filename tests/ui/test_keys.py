"""Keys come from files, one set over another; what cannot be used is said and left out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tui_agent.settings.folders import config_folder
from tui_agent.ui.actions import ACTIONS, ANYWHERE
from tui_agent.ui.keys.keymap import LEADER, VIEW_IDS, conflicts, load_keys, spelled
from tui_agent.ui.keys.leader import menu_pages

#: What terminals, tmux and screen keep for themselves.
TAKEN = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+q", "ctrl+z", "ctrl+c"}


@pytest.mark.parametrize("name", ["default", "vim"])
def test_the_shipped_sets_have_no_faults(name: str) -> None:
    assert load_keys(name).faults == ()


#: Reached by a slash command and the palette, since nearly all keys are taken.
WITHOUT_KEY = {
    *("app.vim", "chat.btw", "chat.goal", "chat.paste_picture", "commands.forget_builds"),
    *(
        f"session.{name}"
        for name in ("rewind", "mode", "carry_out", "agent", "init", "config", "status", "memory")
    ),
    *(f"session_list.{name}" for name in ("rename", "everywhere", "sort", "fork", "delete")),  # in its menu
    *(f"session.{name}" for name in ("skills", "agents", "attempts", "allow_host", "hooks", "mcp")),
    *("session.stats", "session.doctor", "session.setup"),
}


@pytest.mark.parametrize("name", ["default", "vim"])
def test_every_action_has_a_key(name: str) -> None:
    keys = load_keys(name)
    assert {name for name in (*ACTIONS, *VIEW_IDS) if not keys.shown(name)} == WITHOUT_KEY


@pytest.mark.parametrize("name", ["default", "vim"])
def test_no_default_is_a_key_that_terminals_take(name: str) -> None:
    keys = load_keys(name).by_action
    meant_so = ("app.quit", "app.suspend")  # there they mean what terminals mean by them
    used = {key for action, found in keys.items() for key in found if action not in meant_so}
    assert not used & TAKEN
    for action, found in keys.items():
        assert not found or [key for key in found if not key.startswith("alt+")], action


def test_the_files_are_the_truth() -> None:
    with (config_folder() / "keys.toml").open("rb") as file:
        tables = tomllib.load(file)
    named = {f"{pane}.{name}" for pane, rows in tables.items() for name in rows}
    assert named == {*ACTIONS, *VIEW_IDS}


def write(folder: Path, text: str) -> list[Path]:
    (folder / "keys.toml").write_text(text)
    return [folder]


def test_a_file_of_ones_own_changes_what_it_names(tmp_path: Path) -> None:
    keys = load_keys(folders=write(tmp_path, '[review]\napply = ["y", "enter"]\nskip = ""\n'))
    assert keys.faults == ()
    assert keys.by_action["review.apply"] == ("y", "enter")
    assert keys.by_action["review.skip"] == ()
    assert keys.by_action["review.undo"] == ("u",)
    assert keys.keymap()["review.apply"] == "y,enter"
    assert "review.skip" not in keys.keymap()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[review]\naply = "y"\n', "review.aply: did you mean review.apply?"),
        ("[review]\napply = 3\n", "review.apply are not text"),
        ('apply = "y"\n', "apply is outside a table"),
        ("[review\n", "cannot be read"),
        ('[review]\napply = "n"\n', "The key n is bound to"),
        ('[turn]\nstop = "enter"\n', "hides turn.stop"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, text: str, said: str) -> None:
    faults = load_keys(folders=write(tmp_path, text)).faults
    assert len([fault for fault in faults if said in fault]) >= 1, faults


def test_a_broken_file_leaves_the_shipped_keys(tmp_path: Path) -> None:
    assert load_keys(folders=write(tmp_path, "[review\n")).by_action == load_keys().by_action


def test_an_unknown_set_is_said_and_the_default_used() -> None:
    keys = load_keys("emacs")
    assert keys.faults == ("There is no set of keys 'emacs': choose default or vim",)
    assert keys.by_action == load_keys().by_action


def test_the_same_letter_in_two_panes_is_no_conflict() -> None:
    assert conflicts({"review.skip": ("s",), "subtasks.skip": ("s",)}) == []


def test_second_keys_share_one_place() -> None:
    assert len(conflicts({"chat.copy": ("leader y",), "app.notices": ("leader y",)})) == 1


def test_second_keys_are_not_in_the_keymap() -> None:
    keys = load_keys()
    assert not [key for key in keys.keymap().values() if LEADER in key]
    assert keys.after_leader()["u"].id == "changes.undo"
    assert keys.shown("changes.undo") == "Ctrl+O u"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("ctrl+p", "Ctrl+P"),
        ("shift+f6", "Shift+F6"),
        ("escape", "Esc"),
        ("?", "?"),
        ("shift+u", "U"),
        ("]", "]"),
    ],
)
def test_keys_are_spelled_for_the_eye(key: str, shown: str) -> None:
    assert spelled(key) == shown


def test_hints_are_given_to_actions_of_every_pane() -> None:
    panes = {action.pane for action in ACTIONS.values() if action.hint}
    assert {"files", "buffers", "review", "chat", "plan", "todos", "known", "subtasks", ANYWHERE} <= panes


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('[review]\napply_all = "n"\n', "review.apply_all"),
        ('[changes]\ncommit = "f2"\n', "changes.commit"),
        ('[app]\nquit = "enter"\n', "app.quit"),
        ('[review]\nnext_hunk = "a"\n', "review.apply"),
        ('[pane]\nnext = "ctrl+t"\n', "turn.stop"),
        ('[pane]\nnext = "leader x"\n', "buffers.close"),
    ],
)
def test_a_workspace_sets_no_key_that_decides_anything(tmp_path: Path, text: str, refused: str) -> None:
    folder = tmp_path / ".tui-agent"
    folder.mkdir()
    (folder / "keys.toml").write_text(text + '[files]\nopen = ["enter", "l"]\n')
    keys = load_keys(folders=(folder,))
    assert keys.by_action | {"files.open": ()} == load_keys().by_action | {"files.open": ()}
    assert keys.by_action["files.open"] == ("enter", "l")
    assert len(keys.faults) == 1 and refused in keys.faults[0] and str(folder) in keys.faults[0]


def test_keys_of_a_workspace_are_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs.toml").write_text('[pane]\nnext = "f6"\n')
    folder = tmp_path / ".tui-agent"
    folder.mkdir()
    (folder / "keys.toml").symlink_to("../theirs.toml")
    keys = load_keys(folders=(folder,))
    assert keys.by_action == load_keys().by_action and "cannot be read" in keys.faults[0]


def test_nothing_needs_shift_and_a_function_key() -> None:
    for name in ("default", "vim"):
        keys = load_keys(name)
        needs = [action for action in keys.by_action if keys.shown(action).startswith("Shift+F")]
        assert needs == [], "the first key is the one that is shown"


#: What a key means where it has more than one action.
MEANINGS = {
    "ctrl+c": {"app.quit"},
    "ctrl+f": {"buffers.find", "chat.search"},  # find
    "ctrl+g": {"form.keep", "prompt.carry_out"},  # go ahead
}


def test_one_key_means_one_thing_in_panes_and_dialogs() -> None:
    owners: dict[str, set[str]] = {}
    for name, keys in load_keys().by_action.items():
        for key in keys:
            if re.fullmatch(r"(ctrl\+[a-z]|f\d+)", key):
                owners.setdefault(key, set()).add(name)
    several = {key: names for key, names in owners.items() if len(names) > 1}
    assert {key: names for key, names in several.items() if names != MEANINGS.get(key)} == {}


def test_a_function_key_is_never_the_only_one() -> None:
    """Laptops and some terminals send none of them."""
    function = re.compile(r"(shift\+)?f\d+$")
    for name in ("default", "vim"):
        only = [a for a, keys in load_keys(name).by_action.items() if keys and all(map(function.match, keys))]
        assert only == []


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (160, 48)])
def test_the_menu_of_the_leader_is_whole_on_every_screen(size: tuple[int, int]) -> None:
    width, height = size
    after = load_keys().after_leader()
    pages = menu_pages(after, width - 4, int(height * 0.75) - 2)
    said = "\n".join(line.plain for page in pages for line in page)
    assert all(len(page) <= height * 0.75 and line.cell_length <= width for page in pages for line in page)
    assert "…" not in said and all(f"{spelled(key)} " in said for key in after)
    assert {"Go to", "Changes", "Session", "Editor", "Panes"} <= {
        part.strip() for line in said.splitlines() for part in line.split("   ")
    }

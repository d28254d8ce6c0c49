"""The table of keys in docs/keys.md against the keys that ship: what it names is bound where it says so."""

from __future__ import annotations

import re
from pathlib import Path

from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP
from tui_agent.ui.keys.keymap import load_keys, place_of

KEYS_PAGE = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
KEYS = load_keys()
#: Where the keys of a row count; other rows are called like their pane.
PLACES = {
    "everywhere": (),
    "panes": (),
    "editor": ("buffers",),
    "chat": ("chat", "prompt"),
    "sub-tasks": ("subtasks",),
    "todos, sub-tasks": ("todos", "subtasks"),
}
LEADER = "Ctrl+O, then a letter"
_KEY = re.compile(r"(?:in a conflict )?((?:Ctrl\+O )?[^\s`,]+(?:, [^\s`,]+)*) \S")
_NAMES = {"↑": "up", "↓": "down", "←": "left", "→": "right", "pgdn": "pagedown"}
#: The chat's input takes these itself.
_NO_KEYS = ("1–9", "@", "before")


def rows() -> list[tuple[str, str]]:
    """(row, key) for each key that the table names."""
    found = []
    for line in KEYS_PAGE.split("| where | keys |")[1].split("\n\n")[0].splitlines()[2:]:
        row, items = (cell.strip() for cell in line.strip("| ").split(" | ", 1))
        for item in re.split(r" · |; ", items):
            named = _KEY.match(item)
            keys = [] if named is None or named[1].startswith(_NO_KEYS) else named[1].split(", ")
            keys = [key for key in keys if key.isascii() or key.split("+")[-1] in _NAMES]  # others are signs
            found += [(row, key) for key in keys if not item.startswith(("wait,", "after it"))]
    return found


def as_bound(row: str, key: str) -> str:
    """A key as `keys.toml` has it."""
    if row == LEADER or key.startswith("Ctrl+O "):
        letter = key.removeprefix("Ctrl+O ")
        letter = _NAMES.get(letter, letter)
        return f"leader shift+{letter.lower()}" if letter.isupper() else f"leader {letter}"
    if len(key) == 1:
        return key
    *held, last = key.lower().split("+")
    return "+".join([*held, _NAMES.get(last, last)])


def bound(row: str) -> set[str]:
    places = {APP, ANYWHERE, *PLACES.get(row, (row,))}
    return {
        key
        for name, keys in KEYS.by_action.items()
        if place_of(name) in places or (name in ACTIONS and row == LEADER)
        for key in keys
    }


def test_a_key_that_it_names_is_bound_there() -> None:
    named = rows()
    assert ("review", "p") in named and (LEADER, "M") in named
    assert [(row, key) for row, key in named if as_bound(row, key) not in bound(row)] == []


def test_it_says_where_all_keys_and_all_actions_are_shown() -> None:
    assert "F1 lists every key" in KEYS_PAGE and "f1" in KEYS.by_action["app.help"]
    assert "Ctrl+P finds an action" in KEYS_PAGE and "ctrl+p" in KEYS.by_action["app.palette"]

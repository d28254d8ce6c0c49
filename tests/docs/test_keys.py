"""The tables of docs/keys.md against the shipped keys: each key is bound in the named place."""

from __future__ import annotations

from pathlib import Path

from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP
from tui_agent.ui.keys.keymap import load_keys, place_of

KEYS_PAGE = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
KEYS = load_keys()
#: Places of the keys of a section, if they differ from its title.
PLACES = {
    "everywhere": (),
    "panes": (),
    "editor": ("buffers",),
    "chat": ("chat", "prompt"),
    "known files": ("known",),
    "sub-tasks": ("subtasks",),
}
LEADER = "ctrl+o, then a letter"
_NAMES = {"↑": "up", "↓": "down", "←": "left", "→": "right", "pgdn": "pagedown"}
#: The chat's input handles these itself.
_NO_KEYS = ("`", "1–9")


def rows() -> list[tuple[str, str]]:
    """(section, key) for each key of the tables."""
    found = []
    for section in KEYS_PAGE.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        _, _, table = text.partition("| key | action |\n|---|---|\n")
        for line in table.split("\n\n")[0].splitlines():
            keys = line.removeprefix("| ").split(" | ")[0]
            found += [(title.lower(), key) for key in keys.split(", ") if not key.startswith(_NO_KEYS)]
    return found


def as_bound(row: str, key: str) -> str:
    """A key as `keys.toml` has it."""
    if row == LEADER or key.startswith("Ctrl+O "):
        letter = key.removeprefix("Ctrl+O ")
        letter = _NAMES.get(letter, letter)
        if len(letter) > 1:
            return f"leader {letter.lower()}"
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


def test_each_key_is_bound() -> None:
    named = rows()
    assert ("review", "p") in named and (LEADER, "M") in named and len(named) > 90
    assert [(row, key) for row, key in named if as_bound(row, key) not in bound(row)] == []


def test_the_page_names_the_lists_of_keys_and_actions() -> None:
    assert "F1 lists every key" in KEYS_PAGE and "f1" in KEYS.by_action["app.help"]
    assert "Ctrl+P finds an action" in KEYS_PAGE and "ctrl+p" in KEYS.by_action["app.palette"]

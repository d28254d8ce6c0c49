"""The common jobs of `docs/notes/keys.md`: our keys do them, and their number is that of the table."""

from __future__ import annotations

import re
from pathlib import Path

from support.screens import on_screen
from support.sessions import reply

from tui_agent.ui.keys.keymap import load_keys

TABLE = Path(__file__).parents[2] / "docs" / "notes" / "keys.md"
#: The actions of the keys, where a key is one of an action.
ACTIONS = {
    "apply all changes": ["changes.apply_all"],
    "apply a hunk": ["pane.review", "review.apply"],
    "skip a hunk": ["pane.review", "review.skip"],
    "undo": ["changes.undo"],
    "commit": ["changes.commit"],
    "stop what runs": ["app.close"],
    "find in a file": ["buffers.find"],
    "switch the model": ["session.model"],
    "new session": ["session.new"],
    "resume a session": ["session.open"],
}
CHANGE = {"path": "a.py", "edits": [{"search": "one", "replace": "two"}]}


def rows() -> dict[str, list[str]]:
    compared = TABLE.read_text().partition("| job |")[2]
    lines = [
        ["job"],
        *(line.strip("| \n").split(" | ") for line in compared.splitlines() if line.startswith("| ")),
    ]
    return {cells[0]: cells[1:] for cells in lines[1:]}


def keys_of(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_each_count_is_that_of_its_keys_and_ours_is_not_above_theirs() -> None:
    table = rows()
    assert len(table) == 15
    bound = load_keys()
    more = set()
    for job, cells in table.items():
        counts = []
        for keys, count in zip(cells[::2], cells[1::2], strict=True):
            if count != "–":
                assert len(keys_of(keys)) == int(count), (job, keys)
                counts.append(int(count))
        more |= {job} if counts[0] > max(counts[1:]) else set()
        for action, key in zip(ACTIONS.get(job, ()), _by_action(keys_of(cells[0])), strict=False):
            assert key in [bound.spelled(name) for name in bound.by_action[action]], job
    assert more == {"answer a question"}


def _by_action(keys: list[str]) -> list[str]:
    """Keys with those of the leader as one: `Ctrl+O u`."""
    return [" ".join(keys)] if keys[0] == "Ctrl+O" else keys


async def test_the_keys_do_the_jobs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    replies = [reply("Changed.", fileChanges=[CHANGE]), reply("Again.", fileChanges=[CHANGE])]
    async with on_screen(tmp_path, replies, size=(80, 24)) as it:
        await it.press(*"change", "enter")
        await it.until(lambda: it.session.state.review.open)
        await it.press("f8")
        await it.until(lambda: (tmp_path / "a.py").read_text() == "two\n", "applied")
        await it.press("shift+f8")
        await it.until(lambda: (tmp_path / "a.py").read_text() == "one\n", "undone")
        await it.press("f5", "a")
        await it.until(lambda: it.session.state.layout.focus == "review")
        await it.press("f7", "ctrl+f", *"change")
        await it.shows("you")
        await it.press("escape", "f3", "slash")
        await it.press(*"a.py", "enter")
        await it.until(lambda: it.session.state.buffers.active == "a.py", "open")

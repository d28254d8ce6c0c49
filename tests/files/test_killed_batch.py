"""A batch whose process is killed before any of its system calls: old or new after healing, never between."""

from __future__ import annotations

from pathlib import Path

from support.faults import killed_at, tree

from tui_agent.files.batch import Step, heal, write_batch
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate

OLD = {"a.txt": b"old a", "gone.txt": b"old gone"}
NEW = {"a.txt": b"new a", "deep": None, "deep/er": None, "deep/er/c.txt": b"new c"}
STEPS = [Step("a.txt", b"new a", None), Step("gone.txt", None, None), Step("deep/er/c.txt", b"new c", "")]


class Workspace:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir(parents=True)
        for name, data in OLD.items():
            (self.root / name).write_bytes(data)
        self.gate = Gate(self.root)
        self.journal = folder / "data" / "journal.json"
        self.blobs = Blobs(folder / "data" / "blobs")

    def write(self) -> None:
        write_batch(self.gate, self.journal, self.blobs, STEPS)

    def heal(self) -> None:
        heal(self.gate, self.journal, self.blobs)

    def settled(self) -> bool:
        """Whether the tree is one of the two, and nothing is left over."""
        return tree(self.root) in (OLD, NEW) and not self.journal.exists()


def test_killed_anywhere_it_is_old_or_new_after_healing(tmp_path: Path) -> None:
    number, between = 1, 0
    while True:
        here = Workspace(tmp_path / str(number))
        if not killed_at(number, here.write):
            break
        between += tree(here.root) not in (OLD, NEW)
        here.heal()
        assert here.settled(), f"killed before call {number}: {tree(here.root)}"
        if tree(here.root) == OLD:
            here.write()
        assert tree(here.root) == NEW
        number += 1
    assert between > 5, "the kills must reach the middle of the work"


def test_not_healed_it_would_show(tmp_path: Path) -> None:
    """Without healing some kill leaves a mixture: the test above can fail."""

    def mixed(number: int) -> bool:
        here = Workspace(tmp_path / str(number))
        assert killed_at(number, here.write), "it was never between"
        return tree(here.root) not in (OLD, NEW)

    assert any(mixed(number) for number in range(1, 100))


def test_killed_while_healing_it_is_healed_the_next_time(tmp_path: Path) -> None:
    """Some of the pairs of kills."""
    number, healings = 1, 0
    while True:
        inner = 1
        while True:
            here = Workspace(tmp_path / f"{number}-{inner}")
            if not killed_at(number, here.write):
                assert healings > 0
                return
            if not here.journal.exists() or not killed_at(inner, here.heal):
                break
            healings += 1
            here.heal()
            assert here.settled(), f"killed before calls {number} and {inner}: {tree(here.root)}"
            inner += 11
        number += 9

"""The comparison of a layer with the folder below, in this process: each kind of change, each limit of a budget."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tui_agent.sandbox import layer_comparison
from tui_agent.sandbox.folder_access import FolderAccess
from tui_agent.sandbox.layer_comparison import (
    BINARY,
    NO_ROOM,
    TOO_LARGE,
    Budget,
    ChangedEntry,
    Comparison,
    EarlierState,
    write_all,
)

AMPLE = Budget(files=100, entries=1000, depth=10, largest=1000, texts=10_000, read=100_000, seconds=60.0)
FILE = 0o100_000


class Outcome(NamedTuple):
    found: list[ChangedEntry]
    left: dict[str, tuple[int, list[str]]]
    kept: bytes
    end: int

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(one.path, one.kind) for one in self.found]


class Folders:
    """A layer of a command, and the folder below."""

    def __init__(self, parent: Path) -> None:
        self.layer, self.real, self.parent = parent / "layer", parent / "real", parent
        self.layer.mkdir()
        self.real.mkdir()

    def written(self, path: str, text: bytes = b"new\n", mode: int = 0o644) -> None:
        _write(self.layer / path, text, mode)

    def there(self, path: str, text: bytes = b"old\n", mode: int = 0o644) -> None:
        _write(self.real / path, text, mode)

    def deleted(self, path: str) -> None:
        (self.layer / path).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(self.layer / path, 0o020_000, os.makedev(0, 0))

    def replaced(self, path: str) -> None:
        """A folder that hides the one below."""
        (self.layer / path).mkdir(parents=True)
        os.setxattr(self.layer / path, "user.overlay.opaque", b"y")

    def compared(
        self,
        *,
        seeds: Mapping[str, EarlierState] | None = None,
        since: float | None = None,
        begin: int = 0,
        apart: tuple[str, ...] = (),
        beside: bool = False,
        paths: list[str] | None = None,
        copied: dict[str, tuple[int, int, int]] | None = None,
        **limits: Any,
    ) -> Outcome:
        budget = AMPLE._replace(**limits)
        since = time.time() + 1000 if since is None else since
        with (
            FolderAccess(str(self.layer), own=True) as layer,
            FolderAccess(str(self.real)) as real,
            open(self.parent / "contents", "w+b") as contents,
        ):
            done = Comparison(
                layer, real, seeds or {}, since, budget, contents.fileno(), begin, apart, beside
            )
            if copied is not None:
                found = done.of_copy(copied)
            else:
                found = done.of_layer() if paths is None else done.of_paths(paths)
            return Outcome(found, done.left, os.pread(contents.fileno(), 1 << 20, 0), done.end)


def _write(path: Path, text: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    path.chmod(mode)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_contents_are_kept_one_after_the_other_and_an_unchanged_one_takes_no_room(folders: Folders) -> None:
    for path, text in (("a", b"one\n"), ("b", b"same\n"), ("c", b"three\n")):
        folders.written(path, text)
    folders.there("a", b"two\n")
    folders.there("b", b"same\n")
    done = folders.compared(begin=7)
    digests = [blake2b(text, digest_size=20).hexdigest() for text in (b"one\n", b"three\n")]
    assert done.found == [
        ChangedEntry("a", "changed", size=4, at=7, digest=digests[0]),
        ChangedEntry("c", "new", size=6, at=11, digest=digests[1]),
    ]
    assert (done.kept[7:17], done.end, done.left) == (b"one\nthree\n", 17, {})


@pytest.mark.parametrize(("failures", "readable"), [(1, True), (3, True), (4, False)])
def test_a_file_that_is_replaced_in_the_moment_of_its_reading_is_read_again(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, failures: int, readable: bool
) -> None:
    folders.written("a", b"one\n")
    folders.there("a", b"two\n")
    opened, left = FolderAccess.open, [FileNotFoundError()] * failures

    def replaced(access: FolderAccess, path: str) -> int:
        if left:
            raise left.pop()
        return opened(access, path)

    monkeypatch.setattr(FolderAccess, "open", replaced)
    done = folders.compared()
    assert [one.why for one in done.found] == ["" if readable else "it could not be read"]
    assert set(done.left) == (set() if readable else {"unreadable"})


@pytest.mark.parametrize(
    ("before", "after", "kind", "executable"),
    [
        (0o644, 0o755, "mode", True),
        (0o755, 0o644, "mode", False),
        (0o755, 0o700, None, True),
        (0o644, 0o611, None, False),
        (0o644, 0o744, "mode", True),
    ],
)
def test_of_a_mode_only_the_owner_s_right_to_execute_counts(
    folders: Folders, before: int, after: int, kind: str | None, executable: bool
) -> None:
    folders.there("a", b"same\n", before)
    folders.written("a", b"same\n", after)
    expected = [ChangedEntry("a", kind, executable, size=5)] if kind else []
    assert folders.compared().found == expected


def test_a_new_program_is_executable(folders: Folders) -> None:
    folders.written("a", b"#!\n", 0o755)
    assert [one.executable for one in folders.compared().found] == [True]


def _link(folders: Folders) -> None:
    for path, before, after in (("same", "x", "x"), ("other", "x", "y"), ("new", "", "/etc/passwd")):
        os.symlink(after, folders.layer / path)
        if before:
            os.symlink(before, folders.real / path)


def _special(folders: Folders) -> None:
    os.mkfifo(folders.layer / "pipe")
    folders.there("pipe")


def _deletions(folders: Folders) -> None:
    folders.there("a", mode=0o755)
    folders.there("d/b")
    folders.there("d/e/c")
    for path in ("a", "d", "never"):
        folders.deleted(path)


def _replaced(folders: Folders) -> None:
    folders.there("d/a")
    folders.there("d/e/b")
    folders.there("d/kept", b"same\n")
    folders.replaced("d")
    folders.written("d/kept", b"same\n")
    folders.written("d/new")


def _kept_folder(folders: Folders) -> None:
    folders.there("d/a")
    folders.written("d/new")


def _file_for_folder(folders: Folders) -> None:
    folders.there("d/a")
    folders.there("d/b")
    folders.written("d")


def _folder_for_file(folders: Folders) -> None:
    folders.there("d")
    folders.written("d/a")


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (_link, [("new", "link"), ("other", "link")]),
        (_special, [("pipe", "special")]),
        (_deletions, [("a", "deleted"), ("d/b", "deleted"), ("d/e/c", "deleted")]),
        (_replaced, [("d/a", "deleted"), ("d/e/b", "deleted"), ("d/new", "new")]),
        (_kept_folder, [("d/new", "new")]),
        (_file_for_folder, [("d/a", "deleted"), ("d/b", "deleted"), ("d", "new")]),
        (_folder_for_file, [("d", "deleted"), ("d/a", "new")]),
    ],
)
def test_each_kind_of_entry(
    folders: Folders, prepare: Callable[[Folders], None], expected: list[tuple[str, str]]
) -> None:
    prepare(folders)
    done = folders.compared()
    assert sorted(done.kinds) == sorted(expected)
    assert [one.target for one in done.found if one.path == "other"] in ([], ["y"])
    assert [one.executable for one in done.found if one.path == "a"] in ([], [True])


def test_caches_and_named_paths_are_left_out_at_every_depth(folders: Folders) -> None:
    for path in ("__pycache__/a", "d/.git/config", "d/build/x", "build/y", "d/z"):
        folders.written(path)
    assert folders.compared(apart=("d/build",)).kinds == [("build/y", "new"), ("d/z", "new")]
    paths = ["d/z", "d/.git/config", "missing"]
    assert folders.compared(paths=paths).kinds == [("d/z", "new")]


@pytest.mark.parametrize(("since", "meanwhile"), [(0.0, True), (None, False)])
def test_a_file_that_changed_after_the_start_of_the_view_is_marked(
    folders: Folders, since: float | None, meanwhile: bool
) -> None:
    for path in ("a", "gone"):
        folders.there(path)
    folders.written("a")
    folders.written("new")
    folders.deleted("gone")
    found = {one.path: one.meanwhile for one in folders.compared(since=since).found}
    assert found == {"a": meanwhile, "gone": meanwhile, "new": False}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"a\0", BINARY),
        (b"\xff\xfeh\0i\0", ""),
        (b"\xfe\xff\0h", ""),
        (b"x" * 1000, ""),
        (b"x" * 1001, TOO_LARGE),
    ],
)
def test_what_is_kept_of_a_content(folders: Folders, text: bytes, why: str) -> None:
    folders.written("a", text)
    (found,) = folders.compared().found
    assert (found.why, found.at, found.size) == (why, -1 if why else 0, len(text))
    assert (found.digest == "") is (why == TOO_LARGE)


def test_texts_and_bytes_beyond_a_budget_are_named(folders: Folders) -> None:
    for path in "abc":
        folders.written(path, b"12345")
    done = folders.compared(texts=10, begin=3)
    assert [(one.at, one.why) for one in done.found] == [(3, ""), (8, ""), (-1, NO_ROOM)]
    assert done.left == {"texts": (1, ["c"])}
    done = folders.compared(read=10)
    assert [(one.at, one.why) for one in done.found] == [(0, ""), (5, ""), (-1, NO_ROOM)]
    assert done.left == {"read": (1, ["c"])}


def test_names_beyond_a_budget_are_counted_and_the_first_three_named(folders: Folders) -> None:
    for path in "abcdef":
        folders.written(path)
    for path in ("x", "y", "z"):
        folders.there(path)
        folders.deleted(path)
    done = folders.compared(files=2)
    assert done.kinds == [("a", "new"), ("b", "new"), ("x", "deleted"), ("y", "deleted")]
    assert done.left == {"files": (4, ["c", "d", "e"]), "deleted": (1, ["z"])}
    done = folders.compared(entries=4)
    assert done.kinds == [("a", "new"), ("b", "new"), ("c", "new")]
    assert done.left == {"entries": (6, ["d"])}


def test_names_have_a_joint_length(folders: Folders) -> None:
    for path in (f"{'a' * 199}/{'b' * 200}", f"{'c' * 200}/{'d' * 200}"):
        folders.written(path)
    first = f"{'a' * 199}/{'b' * 200}"
    assert folders.compared(files=1).kinds == [(first, "new")]
    (folders.layer / first).unlink()
    assert folders.compared(files=1).left == {"files": (1, [f"{'c' * 200}/{'d' * 200}"])}


def test_folders_in_folders_are_read_to_a_depth(folders: Folders) -> None:
    for path in ("a/b/c/x", "a/b/y", "z"):
        folders.written(path)
    done = folders.compared(depth=3)
    assert done.kinds == [("a/b/y", "new"), ("z", "new")]
    assert done.left == {"depth": (1, ["a/b/c"])}


def test_reading_ends_in_time_and_the_rest_is_counted(folders: Folders) -> None:
    for number in range(70):
        folders.written(f"{number:02}")
    done = folders.compared(seconds=-1)
    assert (len(done.found), done.left) == (62, {"seconds": (8, ["62"])})


HIDDEN, GONE = EarlierState("hidden", b"", None), EarlierState("gone", b"", None)


@pytest.mark.parametrize(
    ("seed", "real", "after", "expected"),
    [
        (EarlierState("file", b"new\n", None), None, 0o644, None),
        (EarlierState("file", b"new\n", None), None, 0o755, "mode"),
        (EarlierState("file", b"new\n", None), 0o755, 0o755, None),
        (EarlierState("file", b"new\n", None), 0o755, 0o644, "mode"),
        (EarlierState("file", b"new\n", 0o755), 0o644, 0o755, None),
        (EarlierState("file", b"new\n", 0o755), None, 0o644, "mode"),
        (EarlierState("file", b"old\n", None), 0o644, 0o644, "changed"),
        (EarlierState("file", b"newer\n", None), None, 0o644, "changed"),
        (HIDDEN, 0o644, 0o644, None),
        (GONE, 0o644, 0o644, "new"),
    ],
)
def test_a_pending_state_counts_as_the_one_before(
    folders: Folders, seed: EarlierState, real: int | None, after: int, expected: str | None
) -> None:
    if real is not None:
        folders.there("d/a", b"old\n", real)
    folders.written("d/a", b"new\n", after)
    found = folders.compared(seeds={"d/a": seed}).found
    assert [one.kind for one in found] == ([expected] if expected else [])
    assert [one.executable for one in found] == ([after == 0o755] if expected else [])


def test_of_a_pending_state_that_is_deleted_only_a_file_is_told(folders: Folders) -> None:
    for path in ("a", "h", "g"):
        folders.there(path)
        folders.deleted(path)
    seeds = {"a": EarlierState("file", b"", 0o755), "h": HIDDEN, "g": GONE}
    assert folders.compared(seeds=seeds).found == [ChangedEntry("a", "deleted", True)]


@pytest.mark.parametrize("beside", [False, True])
def test_a_pending_file_without_a_trace_is_deleted_unless_its_layer_is_another(
    folders: Folders, beside: bool
) -> None:
    folders.there("real")
    pending = EarlierState("file", b"", None)
    seeds = dict.fromkeys(("new", "real", "d/__pycache__/a"), pending) | {"h": HIDDEN}
    assert folders.compared(seeds=seeds, beside=beside).kinds == ([] if beside else [("new", "deleted")])


def test_a_pending_file_below_a_deleted_or_replaced_folder_is_deleted(folders: Folders) -> None:
    folders.deleted("gone")
    folders.replaced("other")
    (folders.layer / "kept").mkdir()
    folders.written("file")
    pending = EarlierState("file", b"", None)
    seeds = dict.fromkeys(("gone/a", "other/a", "kept/a", "file/a"), pending)
    done = folders.compared(seeds=seeds, beside=True)
    assert sorted(done.kinds) == [
        ("file", "new"),
        ("file/a", "deleted"),
        ("gone/a", "deleted"),
        ("other/a", "deleted"),
    ]


def test_a_copy_is_compared_by_size_time_and_mode(folders: Folders) -> None:
    copied = {}
    for path in ("same", "larger", "older", "mode", "gone", "d/gone", "folder"):
        folders.there(path, b"one\n")
        if "gone" not in path and path != "folder":
            folders.written(path, b"one\n")
        copied[path] = (4, 5_000_000_000, FILE | 0o644)
    folders.written("larger", b"two\nthree\n")
    folders.written("older", b"two\n")
    folders.written("mode", b"one\n", 0o755)
    folders.written("folder/new", b"one\n")
    for path in ("same", "mode", "larger"):
        os.utime(folders.layer / path, ns=(0, 5_000_000_000))
    (folders.real / "same").write_bytes(b"it is not read\n")
    done = folders.compared(copied=copied)
    assert done.kinds == [
        ("d/gone", "deleted"),
        ("folder", "deleted"),
        ("folder/new", "new"),
        ("gone", "deleted"),
        ("larger", "changed"),
        ("mode", "mode"),
        ("older", "changed"),
    ]


def test_bytes_are_written_whole_however_few_the_kernel_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    monkeypatch.setattr(layer_comparison.os, "pwrite", lambda to, data, at: real(to, data[:3], at))
    with open(tmp_path / "x", "w+b") as file:
        write_all(file.fileno(), b"0123456789", 2)
        assert os.pread(file.fileno(), 20, 0) == b"\0\x000123456789"

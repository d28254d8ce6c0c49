"""The way back from a view: what a command left is read below its folder alone, bounded, and never at our cost."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.sessions import open_session
from support.views import Runner, in_view, on_a_copy, text

from tui_agent.sandbox import folder_access, layer_changes
from tui_agent.sandbox.folder_access import FolderAccess
from tui_agent.sandbox.layer_comparison import BINARY
from tui_agent.sandbox.view_plan import Seed

VIEWS = pytest.mark.parametrize("view", [in_view, on_a_copy], ids=["overlay", "landlock"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace below a folder that holds a person's other files."""
    root = tmp_path / "person" / "projects" / "work"
    root.mkdir(parents=True)
    (tmp_path / "person" / "letters").mkdir()
    (tmp_path / "person" / "letters" / "private.txt").write_text("CANARY")
    (root / "a.txt").write_text("old\n")
    os.symlink("../..", root / "docs")
    return root


@VIEWS
@pytest.mark.parametrize(
    "command",
    [
        "rm docs; mkdir -p docs/letters",
        "rm docs; mkdir -p docs/letters/private.txt",
        "rm docs; mkdir docs; echo x > docs/letters",
        "rm docs; mkdir -p docs/letters; echo CANARY > docs/letters/private.txt",
        "rm docs; mkdir -p docs/letters; rmdir docs/letters; mkdir docs/letters",
    ],
)
async def test_a_folder_in_the_place_of_a_link_is_not_compared_with_what_the_link_led_to(
    root: Path, view: Runner, command: str
) -> None:
    result = await view(root, command)
    assert result.status == 0, text(result)
    found = {one.path: one for one in result.changes}
    assert found.pop("docs").kind == "deleted"
    # all that is there is what the command wrote, as new, without anything of the person's other files
    assert {one.kind for one in found.values()} <= {"new"}, found
    assert set(found) <= {"docs/letters", "docs/letters/private.txt"}


#: Commands in folders n0, n1 and so on, each with one.txt and two.txt pending; what becomes of these and others there.
ON_PENDING: list[tuple[str, str]] = [
    ("true", ""),
    ("rm one.txt", "deleted one.txt"),
    ("rm *; echo 1 > one.txt; echo 3 > two.txt", "changed two.txt"),
    ("echo 2 > new.txt", "new new.txt"),
    ("mkdir inner; echo 2 > inner/new.txt", "new inner/new.txt"),
    ("mv one.txt three.txt", "deleted one.txt, new three.txt"),
    ("cp two.txt x; mv x two.txt", ""),
    ("chmod +x one.txt", "mode one.txt"),
    ("cd ..; rm -r $n", "deleted one.txt, deleted two.txt"),
    ("cd ..; rm -r $n; mkdir $n; echo 1 > $n/one.txt", "deleted two.txt"),
    ("cd ..; rm -r $n; echo 3 > $n", "deleted one.txt, deleted two.txt, new ."),
    ("cd ..; mv $n x$n; mv x$n $n", ""),
]


@VIEWS
@pytest.mark.parametrize("real", [False, True], ids=["new folders", "folders on the disk"])
async def test_what_becomes_of_pending_files_is_told_and_nothing_else(
    root: Path, view: Runner, real: bool
) -> None:
    seeds, words, expected = [], [], set()
    for number, (command, becomes) in enumerate(ON_PENDING):
        seeds += [
            Seed(f"n{number}/{name}.txt", "file", text) for name, text in (("one", b"1\n"), ("two", b"2\n"))
        ]
        words.append(f"(n=n{number}; cd $n; {command})")
        expected |= {
            (f"n{number}/{path}".removesuffix("/."), kind)
            for kind, path in map(str.split, filter(None, becomes.split(", ")))
        }
        if real:
            (root / f"n{number}").mkdir()
            (root / f"n{number}" / "one.txt").write_text("0\n")
    (root / "gone.txt").write_text("0\n")
    expected.add(("gone.txt", "new"))
    seeds.append(Seed("gone.txt", "gone"))
    result = await view(root, "set -e; " + "; ".join([*words, "echo 1 > gone.txt"]), *seeds)
    assert text(result) == ""
    assert {(one.path, one.kind) for one in result.changes} == expected
    assert len(result.changes) == len(expected)


def grown_by() -> Callable[[], float]:
    """Megabytes that this process has held at most from now on, over what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _held("VmRSS")
    return lambda: (_held("VmHWM") - before) / 1024


def _held(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


DEEP = 'python3 -c \'import os\nfor n in range(330): os.mkdir("d"); os.chdir("d")\nopen("x", "w")\''


@VIEWS
async def test_folders_in_folders_cost_neither_result_nor_output(root: Path, view: Runner) -> None:
    result = await view(root, f"echo said; echo y > y; {DEEP}; exit 3")
    assert (result.status, text(result)) == (3, "said\n")
    assert [(one.path, one.kind) for one in result.changes] == [("y", "new")]
    assert "d/d/d" in result.unread and "more than 256 deep" in result.unread


@VIEWS
async def test_large_files_that_take_no_room_cost_the_interface_no_memory(root: Path, view: Runner) -> None:
    await view(root, "true")
    grown = grown_by()
    words = "for i in $(seq 200); do truncate -s 5000000 zeros$i; done; echo last > zz"
    result = await view(root, words)
    assert grown() < 20
    assert len(result.changes) == 201
    assert {one.why for one in result.changes} == {BINARY, ""}
    assert result.changes[-1].after == b"last\n"


async def test_texts_are_kept_up_to_a_limit_and_the_rest_is_named(root: Path) -> None:
    grown = grown_by()
    result = await in_view(root, "for i in $(seq -w 20); do yes text | head -c 5000000 > t$i; done; rm a.txt")
    assert grown() < 20
    kept = [one for one in result.changes if one.contents is not None]
    assert len(kept) == 13
    assert kept[0].after == (b"text\n" * 1_000_000)
    assert [one.kind for one in result.changes if one.path == "a.txt"] == ["deleted"]
    assert "t14, t15, t16 and others (it is more than 64 MB of text)" in result.unread


async def test_so_many_files_are_listed_and_what_was_deleted_is_among_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_changes, "BUDGET", layer_changes.BUDGET._replace(files=10))
    (root / "zz").mkdir()
    for number in range(8):
        (root / "zz" / str(number)).touch()
    result = await in_view(root, "for i in $(seq 40); do echo $i > n$i; done; rm -r zz")
    assert len([one for one in result.changes if one.kind == "new"]) == 10
    assert len([one for one in result.changes if one.kind == "deleted"]) == 8
    assert "and others (more than 10 files were written)" in result.unread


@pytest.mark.parametrize(
    "fault", ["import os; os.kill(os.getpid(), 9)", "import sys; sys.exit(1)", "x = b'x' * (2 << 30)"]
)
async def test_a_fault_costs_the_reader_and_not_the_result(
    root: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    broken = f"; main.__globals__['Comparison'] = lambda *_: exec({fault!r}); main"
    program = layer_changes._PROGRAM.removesuffix("; main") + broken
    monkeypatch.setattr(layer_changes, "_PROGRAM", program)
    result = await in_view(root, "echo said; echo x > x")
    assert (result.ok, text(result), result.changes) == (True, "said\n", ())
    assert "are not listed" in result.unread


async def test_a_person_is_told_what_is_not_listed(root: Path) -> None:
    async with open_session(root, []) as session:
        await session.commands.run(f"echo said; {DEEP}")
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert (result.output, result.how) == ("said\n", "exit")
        assert any("more than 256 deep" in notice.text for notice in session.state.notices.items)


@pytest.mark.parametrize("kernel", ["openat2", "without"])
def test_nothing_is_reached_through_a_link(root: Path, monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    if kernel == "without":
        monkeypatch.setattr(folder_access, "_openat2_works", lambda: False)
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "folder" / "inner" / "b.txt").write_text("b")
    os.symlink("folder", root / "inside")
    os.symlink("../../letters/private.txt", root / "file")
    with FolderAccess(str(root)) as below:
        for path in ("docs/letters", "docs/letters/private.txt", "inside/inner", "inside/inner/b.txt"):
            assert below.status(path) is None, path
            assert below.names(path) == []
            assert below.target(path) is None
        for path in ("file", "docs", "folder", "docs/letters/private.txt", "inside/inner/b.txt"):
            with pytest.raises(OSError):
                below.open(path)
        for path in (
            "../letters",
            "folder/../../../letters/private.txt",
            "..",
            "/etc/passwd",
            "folder/..",
            "",
        ):
            assert below.status(path) is None, path
        assert below.names("docs") == below.names("inside") == []
        assert below.target("docs") == "../.."
        assert below.names("") == ["a.txt", "docs", "file", "folder", "inside"]
        assert below.names("folder/inner") == ["b.txt"]
        with open(below.open("folder/inner/b.txt")) as file:
            assert file.read() == "b"


async def test_nothing_is_read_where_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process is started for it, so that a quick look costs half."""
    monkeypatch.setattr(layer_changes, "_PROGRAM", "import sys; sys.exit")
    result = await in_view(tmp_path, "mkdir .pytest_cache; cat /dev/null")
    assert (result.status, result.changes, result.unread) == (0, (), "")
    result = await in_view(tmp_path, "touch a.txt")
    assert "not listed" in result.unread


async def test_a_pending_file_that_a_command_deletes_is_deleted(tmp_path: Path) -> None:
    result = await in_view(tmp_path, "rm new.txt", Seed("new.txt", "file", b"new\n"))
    assert [(one.path, one.kind) for one in result.changes] == [("new.txt", "deleted")]


@VIEWS
async def test_a_command_leaves_no_descriptor_open(root: Path, view: Runner) -> None:
    opened = []
    for _ in range(3):
        await view(root, "touch x")
        gc.collect()  # A result has its file with contents.
        opened.append(len(os.listdir("/proc/self/fd")))
    assert opened[2] == opened[1]


@VIEWS
async def test_whoever_watches_comes_before_what_a_command_does(root: Path, view: Runner) -> None:
    assert text(await view(root, "nice")) == f"{min(19, os.nice(0) + 5)}\n"

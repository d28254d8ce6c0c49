"""The gate: what is inside passes, everything else is refused with a sentence."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.privileges import unprivileged

from tui_agent.errors import FileError, LooksSecret, PathRefused, TooLarge
from tui_agent.files.gate import MAX_LINKS, Gate, Purpose, read


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("inside\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("outside\n")
    return folder


@pytest.fixture
def gate(root: Path) -> Gate:
    return Gate(root)


REFUSED_WORDS = [
    "",
    ".",
    "..",
    "../x",
    "../work/src/a.py",
    "a/../../x",
    "src/../src/a.py",
    "/etc/passwd",
    "~",
    "~/x",
    "~root/x",
    "src/",
    "src/new/",
    "src/new.",
    "src/new ",
    " new",
    "a\0b",
    "new\nline",
    "new\x1b[31m",
    "new\x7f",
    "new\u202etxt",
    "new\u2066txt",
    "new\u200btxt",
    "new\u2028txt",
    "src\\new.py",
    "\udcff" * 3 + "\ud800",
    "n" * 256,
    "é" * 128,
    "/".join(["d" * 200] * 21),
    "src/a.py/x",
    ".git/config",
    ".git",
    ".GIT/config",
    "src/.git/hooks/x",
    "src/.Git./x",
    "src/.g\u200dit/x",
    "git~1/config",
    "a/.git::$INDEX_ALLOCATION/x",
    "src",
]


@pytest.mark.parametrize("purpose", ["read", "write"])
@pytest.mark.parametrize("path", REFUSED_WORDS)
def test_refused(gate: Gate, path: str, purpose: Purpose) -> None:
    with pytest.raises(PathRefused) as caught:
        gate.place(path, purpose)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


def test_absolute_path_is_refused_even_inside(gate: Gate, root: Path) -> None:
    with pytest.raises(PathRefused, match="absolute"):
        gate.place(str(root / "src" / "a.py"), "read")


@pytest.mark.parametrize("path", ["src/a.py", "./src/a.py", "src//a.py", "src/./a.py"])
def test_inside_is_normalised(gate: Gate, root: Path, path: str) -> None:
    place = gate.place(path, "read")
    assert (place.path, place.real, place.absolute) == ("src/a.py", "src/a.py", root / "src" / "a.py")
    assert place.exists


@pytest.mark.parametrize(
    "path", ["new.py", "deep/er/new.py", "src/…/ü.py", "src/~tmp", ".github/x", "n" * 255]
)
def test_what_is_not_there_may_be_made(gate: Gate, path: str) -> None:
    place = gate.place(path, "write")
    assert (place.path, place.exists) == (path, False)


def test_the_root_can_be_listed_and_a_file_cannot(gate: Gate) -> None:
    assert gate.place(".", "list").path == "."
    assert gate.place("", "list").path == "."
    assert gate.place("src/", "list").path == "src"
    with pytest.raises(PathRefused, match="not a folder"):
        gate.place("src/a.py", "list")


def test_odd_names_that_exist_are_read(gate: Gate, root: Path) -> None:
    for name in ("two\nlines", "rtl\u202e", "back\\slash", " space ", os.fsdecode(b"raw\xff")):
        (root / name).write_text("odd")
        assert read(gate, name, 10) == b"odd"


def test_names_composed_otherwise_mean_the_file_that_is_there(gate: Gate, root: Path) -> None:
    (root / "u\u0308.md").write_text("decomposed")
    assert gate.place("\u00fc.md", "write").path == "u\u0308.md"
    (root / "\u00fc.md").write_text("composed")
    assert read(gate, "\u00fc.md", 100) == b"composed"
    assert read(gate, "u\u0308.md", 100) == b"decomposed"


def test_case_twins_stay_apart(gate: Gate, root: Path) -> None:
    (root / "A.txt").write_text("big")
    (root / "a.txt").write_text("small")
    assert (read(gate, "A.txt", 9), read(gate, "a.txt", 9)) == (b"big", b"small")


# ── links ────────────────────────────────────────────────────────────────────────────────────────────────


def test_links_that_stay_inside_pass(gate: Gate, root: Path) -> None:
    (root / "file").symlink_to("src/a.py")
    (root / "absolute").symlink_to(root / "src" / "a.py")
    (root / "folder").symlink_to("src")
    (root / "chain").symlink_to("folder/../file")
    (root / "src" / "up").symlink_to("../src/./a.py")
    (root / "round").symlink_to("../work/src/a.py")
    (root / "here").symlink_to(".")
    for name in ("file", "absolute", "folder/a.py", "chain", "src/up", "round", "here/here/src/a.py"):
        place = gate.place(name, "read")
        assert (place.path, place.real) == (name, "src/a.py")
        assert read(gate, name, 100) == b"inside\n"


def test_a_new_file_in_a_linked_folder_passes(gate: Gate, root: Path) -> None:
    (root / "folder").symlink_to("src")
    assert gate.place("folder/new/x.py", "write").real == "src/new/x.py"


@pytest.mark.parametrize(
    "target",
    ["../outside/secret", "../outside", "missing", "src/missing", "../missing", "self", "/etc/passwd", "/"],
)
@pytest.mark.parametrize("purpose", ["read", "write", "list"])
def test_links_that_lead_out_to_nothing_or_round_are_refused(
    gate: Gate, root: Path, target: str, purpose: Purpose
) -> None:
    (root / "self").symlink_to(target)
    for path in ("self", "self/secret", "self/new"):
        with pytest.raises(PathRefused):
            gate.place(path, purpose)


def test_a_link_into_git_or_to_a_name_like_it_is_refused(gate: Gate, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "innocent").symlink_to(".git/config")
    (root / "src" / ".git").symlink_to("a.py")
    for path in ("innocent", "src/.git"):
        with pytest.raises(PathRefused, match="git"):
            gate.place(path, "read")


def test_a_git_file_is_refused(gate: Gate, root: Path) -> None:
    (root / ".git").write_text("gitdir: elsewhere")
    with pytest.raises(PathRefused, match="git"):
        gate.place(".git", "read")


def test_a_root_that_is_a_link_is_fine(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    (root / "by-alias").symlink_to(tmp_path / "alias" / "src" / "a.py")
    gate = Gate(tmp_path / "alias")
    assert gate.root == root
    assert read(gate, "by-alias", 100) == b"inside\n"


def test_a_neighbour_with_the_same_beginning_is_outside(gate: Gate, root: Path) -> None:
    twin = root.with_name("work-two")
    twin.mkdir()
    (twin / "x").write_text("other")
    (root / "link").symlink_to(twin / "x")
    with pytest.raises(PathRefused, match="out of the workspace"):
        gate.place("link", "read")
    with pytest.raises(PathRefused, match="outside"):
        gate.relative(twin / "x")


def test_many_links_in_a_row_end(gate: Gate, root: Path) -> None:
    (root / "l0").symlink_to("src/a.py")
    for number in range(1, MAX_LINKS + 1):
        (root / f"l{number}").symlink_to(f"l{number - 1}")
    assert gate.place(f"l{MAX_LINKS - 1}", "read").real == "src/a.py"
    with pytest.raises(PathRefused, match="loop"):
        gate.place(f"l{MAX_LINKS}", "read")


def _swap(victim: Path, target: Path) -> None:
    victim.rename(victim.with_name("moved"))
    victim.symlink_to(target)


@pytest.mark.parametrize("which", ["src", "src/a.py"])
def test_a_link_swapped_in_between_check_and_use_leads_nowhere(
    gate: Gate, root: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Whatever is swapped, at whichever system call: the outside is never read."""
    (root.parent / "outside" / "a.py").write_text("outside\n")
    target = root.parent / "outside" / ("a.py" if which.endswith("py") else "")
    calls = 0
    swap_at = [0]
    real_open, real_stat = os.open, os.stat

    def counting(call: Callable) -> Callable:
        def counted(*args: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls == swap_at[0]:
                _swap(root / which, target)
            return call(*args, **named)

        return counted

    monkeypatch.setattr(os, "open", counting(real_open))
    monkeypatch.setattr(os, "stat", counting(real_stat))
    assert read(gate, "src/a.py", 100) == b"inside\n"
    for swap_at[0] in range(1, calls + 1):
        calls = 0
        try:
            assert read(gate, "src/a.py", 100) == b"inside\n"
        except PathRefused:
            pass
        (root / which).unlink()
        (root / which).with_name("moved").rename(root / which)


# ── what is no file ──────────────────────────────────────────────────────────────────────────────────────


def test_a_pipe_never_blocks(gate: Gate, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(PathRefused, match="pipe"):
        read(gate, "pipe", 10)


def test_a_pipe_swapped_in_does_not_block_either(
    gate: Gate, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def swapping(path: str, flags: int, *args: int, **named: int) -> int:
        if path == "a.py":
            os.unlink(root / "src" / "a.py")
            os.mkfifo(root / "src" / "a.py")
        return real(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(PathRefused, match="regular"):
        read(gate, "src/a.py", 10)


def test_a_socket_is_refused(gate: Gate, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # socket addresses are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(PathRefused, match="socket"):
            read(gate, "s", 10)


def test_a_device_is_refused() -> None:
    with pytest.raises(PathRefused, match="device"):
        Gate(Path("/dev")).place("null", "read")


def test_a_hard_link_is_a_file_like_any_other(gate: Gate, root: Path) -> None:
    (root.parent / "outside" / "plain").write_text("outside\n")
    os.link(root.parent / "outside" / "plain", root / "twin")
    assert read(gate, "twin", 100) == b"outside\n"


@pytest.mark.parametrize("name", [".env", "folder/id_rsa", ".aws/config"])
def test_a_hard_link_to_a_secret_beside_the_folder_or_in_the_home_is_one(
    gate: Gate, root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = root.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    for beside in (root.parent / "outside", home):
        place = beside / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("PASSWORD=1\n")
        (root / "twin").unlink(missing_ok=True)
        os.link(place, root / "twin")
        if beside == home or name == ".env":
            with pytest.raises(LooksSecret):
                read(Gate(root), "twin", 100)


def test_folder_without_permission(tmp_path: Path) -> None:
    with unprivileged() as public:
        (public / "closed").mkdir()
        (public / "closed" / "x").write_text("x")
        (public / "unreadable").write_text("x")
        (public / "unreadable").chmod(0)
        (public / "closed").chmod(0)
        gate = Gate(public)
        with pytest.raises(PathRefused, match="permission"):
            gate.place("closed/x", "read")
        with pytest.raises(FileError, match="permission"):
            read(gate, "unreadable", 10)
        with pytest.raises(PathRefused, match="permission"):
            Gate(public / "closed")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────


def test_reading_has_a_limit(gate: Gate, root: Path) -> None:
    (root / "big").write_bytes(b"x" * 11)
    assert read(gate, "big", 11) == b"x" * 11
    with pytest.raises(TooLarge, match="limit is 10"):
        read(gate, "big", 10)


def test_a_file_that_has_no_size_is_limited_by_what_comes() -> None:
    with pytest.raises(TooLarge):
        read(Gate(Path("/proc/self")), "status", 10)


def test_reading_what_is_not_there(gate: Gate) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read(gate, "src/missing.py", 10)
    with pytest.raises(FileError, match="does not exist"):
        read(gate, "no/such/folder.py", 10)


# ── the root, and what is ours ───────────────────────────────────────────────────────────────────────────


def test_a_root_that_is_none(root: Path) -> None:
    with pytest.raises(PathRefused, match="does not exist"):
        Gate(root / "missing")
    with pytest.raises(PathRefused, match="not a folder"):
        Gate(root / "src" / "a.py")


def test_our_own_folders_are_closed(root: Path) -> None:
    (root / "home" / "data").mkdir(parents=True)
    (root / "home" / "data" / "log").write_text("x")
    (root / "link").symlink_to("home/data/log")
    gate = Gate(root, own=[root / "home" / "data", root.parent / "elsewhere", root, root.parent])
    for path in ("home/data/log", "home/data/new", "link"):
        for purpose in ("read", "write"):
            with pytest.raises(PathRefused, match="tui-agent"):
                gate.place(path, purpose)
    assert gate.place("home/database", "write").path == "home/database"


def test_own_settings_of_a_workspace_are_read_but_never_written(gate: Gate, root: Path) -> None:
    (root / ".tui-agent").mkdir()
    (root / ".tui-agent" / "settings.toml").write_text("x")
    assert read(gate, ".tui-agent/settings.toml", 10) == b"x"
    for path in (".tui-agent/settings.toml", ".Tui-Agent/x", "src/.tui-agent/keys.toml"):
        with pytest.raises(PathRefused, match="belong to tui-agent"):
            gate.place(path, "write")


def test_a_path_from_a_person_becomes_relative(gate: Gate, root: Path) -> None:
    assert gate.relative(root / "src" / "a.py") == "src/a.py"
    assert gate.relative("a.py", root / "src") == "src/a.py"
    assert gate.relative("../src/a.py", root / "src") == "src/a.py"
    assert gate.relative(root) == "."
    with pytest.raises(PathRefused, match="outside"):
        gate.relative("../outside/secret")


def test_a_place_knows_what_its_link_hides(gate: Gate, root: Path) -> None:
    (root / ".env").write_text("KEY=1")
    (root / "AGENTS.md").write_text("rules")
    (root / "notes.txt").symlink_to(".env")
    (root / "rules.txt").symlink_to("AGENTS.md")
    assert gate.place("notes.txt", "read").secret
    assert gate.place("rules.txt", "read").governing
    plain = gate.place("src/a.py", "read")
    assert not plain.secret and not plain.governing


@given(st.lists(st.sampled_from(["..", ".", "", "src", "out", "a.py", "in", "~", "up", "new"]), max_size=6))
def test_whatever_is_named_stays_inside(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    base = tmp_path_factory.getbasetemp() / "property"
    root = base / "work"
    if not root.exists():
        (root / "src").mkdir(parents=True)
        (root / "src" / "a.py").write_text("x")
        (root / "out").symlink_to("..")
        (root / "in").symlink_to("src")
        (root / "src" / "up").symlink_to("../src")
    try:
        place = Gate(root).place("/".join(parts), "read")
    except PathRefused:
        return
    assert Path(os.path.realpath(place.absolute)).is_relative_to(root)
    assert Path(os.path.realpath(root / place.path)) == place.absolute
    assert not place.exists or stat.S_ISREG(place.absolute.stat().st_mode)

"""The plan of a view: the filter of system calls, the stream that the inner program reads, and unsuitable folders."""

from __future__ import annotations

import errno
import io
import marshal
import os
import socket
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tui_agent.sandbox import view_plan
from tui_agent.sandbox.view_plan import (
    MEGABYTE,
    Limits,
    Seed,
    ToolFolders,
    ViewPlan,
    fitting,
    plan,
    refused,
    unfit,
)

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOWED, DENIED, MISSING = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
PLAIN = ViewPlan("/w/work", "/home/me", ("/usr", "/opt"), {"/bin": "usr/bin"}, (), ("/m",), ("/c", "/w/work"))


def decision(code: bytes, machine: int, number: int, *arguments: int) -> int:
    """Runs the filter as the kernel does."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps, at, held = list(struct.iter_unpack("HBBI", code)), 0, 0
    while True:
        kind, yes, no, value = steps[at]
        at += 1
        match kind:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x54:
                held &= value
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(kind)


#: Numbers on both machines, arguments, and the decisions with and without sockets.
CALLS = [
    ((0, 63), (), ALLOWED, ALLOWED),  # read
    ((165, 40), (), DENIED, DENIED),  # mount
    ((272, 97), (), DENIED, DENIED),  # unshare
    ((321, 280), (), DENIED, DENIED),  # bpf
    ((153, 58), (), DENIED, DENIED),  # vhangup, the last of the list
    ((435, 435), (), MISSING, MISSING),  # clone3
    ((56, 220), (17,), ALLOWED, ALLOWED),
    ((56, 220), (0x10000011,), DENIED, DENIED),  # new users
    ((56, 220), (0x00000080 | 17,), ALLOWED, ALLOWED),
    ((16, 29), (0, 0x5412), DENIED, DENIED),  # characters into a terminal
    ((16, 29), (0, 0x541C), DENIED, DENIED),
    ((16, 29), (0, 0x5413), ALLOWED, ALLOWED),  # its size
    *(((41, 198), (family,), ALLOWED, DENIED) for family in (1, 2, 10, 16)),
    *(
        ((41, 198), (family,), DENIED, DENIED) for family in (17, 38, 40)
    ),  # packets, ciphers, virtual machines
    ((53, 199), (1, 1), ALLOWED, ALLOWED),
    ((53, 199), (1, 5 | 0o2000000), ALLOWED, ALLOWED),
    ((53, 199), (1, 2), ALLOWED, DENIED),  # datagrams have other addresses
]


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(("numbers", "arguments", "plain", "without"), CALLS)
def test_what_the_filter_of_system_calls_decides(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    numbers: tuple[int, int],
    arguments: tuple[int, ...],
    plain: int,
    without: int,
) -> None:
    monkeypatch.setattr(view_plan.os, "uname", lambda: SimpleNamespace(machine=name))
    column, machine = MACHINES[name]
    assert decision(refused(), machine, numbers[column], *arguments) == plain
    assert decision(refused(sockets=False), machine, numbers[column], *arguments) == without
    assert decision(refused(), machine ^ 1, numbers[column], *arguments) == DENIED


def test_other_machines_have_other_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_plan.os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    x32 = 0x40000000
    assert decision(refused(), 0xC000003E, x32) == decision(refused(), 0xC000003E, x32 + 9) == DENIED
    assert decision(refused(), 0xC000003E, x32 - 1) == ALLOWED
    monkeypatch.setattr(view_plan.os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    assert refused() == b""


def test_the_inner_program_reads_numbers_in_place_of_folders_and_then_the_contents() -> None:
    made = replace(
        PLAIN,
        seeds=(
            Seed("a", "file", b"one", 0o600),
            Seed("b", "gone", overlay="/c"),
            Seed("d", "hidden", b"two!", None, "/w/work"),
        ),
        texts={"/home/me/.gitconfig": b"text"},
        stores={"/run/tui-agent/x": "/state/x"},
        own_home="/state/home",
        limits=Limits(1, 2, 3, 4),
    )
    stream = io.BytesIO()
    made.write(stream, {"readable": ["/usr"]})
    stream.seek(0)
    read = marshal.load(stream)
    assert read["seeds"] == [
        [1, "a", "file", 0o600, 3],
        [0, "b", "gone", None, 0],
        [1, "d", "hidden", None, 4],
    ]
    assert stream.read() == b"onetwo!text"
    assert (read["texts"], read["stores"]) == (
        [["/home/me/.gitconfig", 4]],
        [("/run/tui-agent/x", "/state/x")],
    )
    assert (read["home"], read["readable"], read["stage"]) == (["/state/home", "/home/me"], ["/usr"], "/tmp")
    assert (read["size"], read["memory"], read["processes"]) == (1, 2, 3)
    assert read["limits"] == {"RLIMIT_FSIZE": 4, "RLIMIT_CORE": 0}
    assert [read[name] for name in ("proxy", "terminal", "network", "kept")] == [False, False, False, ""]
    assert read["filter"] == refused().hex()
    PLAIN.write(bare := io.BytesIO(), {})
    assert marshal.loads(bare.getvalue())["home"] == []


@pytest.mark.parametrize(
    ("isolated", "network", "sockets"),
    [
        ("landlock", False, False),
        ("landlock", True, True),
        ("overlay", False, True),
        ("bubblewrap", True, True),
    ],
)
def test_only_a_copy_without_a_network_has_no_sockets(isolated, network: bool, sockets: bool) -> None:
    replace(PLAIN, isolated=isolated, network=network).write(stream := io.BytesIO(), {})
    assert marshal.loads(stream.getvalue())["filter"] == refused(sockets=sockets).hex()


@pytest.mark.parametrize("isolated", ["overlay", "bubblewrap", "landlock", "sandbox-exec"])
def test_a_copy_is_at_another_path_with_a_home_of_its_own(isolated) -> None:
    made = replace(PLAIN, isolated=isolated, folder="/trials/1")
    if isolated in ("overlay", "bubblewrap"):
        assert (made.root, made.places) == ("/w/work", {"HOME": "/home/me", "TMPDIR": "/tmp"})
    else:
        assert made.root == "/trials/1/work"
        assert made.places == {"HOME": "/trials/1/.home", "TMPDIR": "/trials/1/.tmp"}


@pytest.mark.parametrize(
    ("pages", "most", "layer"), [(1_000_000, 400, 400), (1000, 400, 64), (100_000, 400, 97), (1000, 8, 8)]
)
def test_a_layer_takes_at_most_a_quarter_of_the_free_memory_but_some(
    monkeypatch: pytest.MonkeyPatch, pages: int, most: int, layer: int
) -> None:
    values = {"SC_AVPHYS_PAGES": pages, "SC_PAGESIZE": 4096}
    monkeypatch.setattr(view_plan.os, "sysconf", values.__getitem__)
    made = fitting(Limits(most * MEGABYTE, 2, 3, 4))
    assert (made.layer // MEGABYTE, made.memory, made.processes, made.file) == (layer, 2, 3, 4)


def test_why_a_folder_is_unfit_for_a_kind_of_view(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    environ = {"HOME": str(home)}
    assert unfit(str(home / "work"), environ) == {}
    assert sorted(unfit(str(home), environ)) == ["bubblewrap", "landlock", "overlay", "sandbox-exec"]
    assert sorted(unfit("/dev", environ)) == ["bubblewrap", "overlay"]


def test_folders_of_the_system_are_shown_and_its_links_kept() -> None:
    binds, links = view_plan._system.__wrapped__()
    there = [path for path in view_plan.SYSTEM if os.path.lexists(path)]
    assert sorted([*binds, *links]) == sorted(there) and "/usr" in binds
    assert links == {path: os.readlink(path) for path in there if os.path.islink(path)}


def test_sockets_with_a_path_are_found_and_hidden(tmp_path: Path) -> None:
    path = tmp_path / "a socket"
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(str(path))
        abstract.bind("\0tui-agent-test")
        found = view_plan._sockets()
    assert str(path) in found
    assert all(one.startswith("/") for one in found)


def test_a_plan_hides_given_paths_but_not_the_workspace_and_masks_settings_of_git(tmp_path: Path) -> None:
    root, shared = tmp_path / "work", tmp_path / "shared"
    for folder in (root / ".git", shared):
        folder.mkdir(parents=True)
        (folder / "HEAD").write_text("ref: x\n")
        (folder / "config").write_text("[credential]\n\thelper = x\n[user]\n\tname = me\n")
    (root / "inner").mkdir()
    made = plan(
        root,
        environ={"HOME": str(tmp_path / "home"), "PATH": "/usr/bin"},
        hidden=[str(root / "inner"), str(tmp_path), str(root)],
        git_folders=[str(shared), str(root / ".git/modules/x")],
    )
    assert str(root / "inner") in made.masks
    assert not {str(tmp_path), str(root)} & set(made.masks)
    assert made.overlays == (str(shared), str(root))
    seeds = {(seed.overlay, seed.path): seed for seed in made.seeds}
    assert sorted(seeds) == [(str(shared), "config"), (str(root), ".git/config")]
    for seed in seeds.values():
        assert (seed.kind, seed.mode) == ("hidden", None)
        assert b"me" in seed.content and b"helper" not in seed.content
    assert ("/tmp", 0o1777, made.limits.layer) in made.folders and ("/run", 0o755, MEGABYTE) in made.folders


def test_private_files_and_folders_of_the_system_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is private if others cannot read it, except for programs; a folder if others cannot pass."""
    monkeypatch.setattr(view_plan, "_PRIVATE", (str(tmp_path / "etc"),))
    etc = tmp_path / "etc"
    modes = {"open": 0o644, "run": 0o711, "closed": 0o640, "owner": 0o600, "group": 0o750, "d/closed": 0o600}
    for name, mode in modes.items():
        (etc / name).parent.mkdir(parents=True, exist_ok=True)
        (etc / name).write_text("x\n")
        (etc / name).chmod(mode)
    for name, mode in {"passed": 0o711, "private": 0o750}.items():
        (etc / name).mkdir()
        (etc / name / "x").write_text("x\n")
        (etc / name).chmod(mode)
    (etc / "link").symlink_to("closed")
    folders = ToolFolders()
    expected = ["closed", "d/closed", "owner", "private"]
    for _ in range(2):
        assert folders.hidden([str(tmp_path)]) == [str(etc / name) for name in expected]
    (etc / "d/later").write_text("x\n")
    (etc / "d/later").chmod(0o600)
    assert str(etc / "d/later") in folders.hidden([str(tmp_path)])


def test_files_of_a_tool_are_private_only_beside_open_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of a person with a strict umask are closed; of these only those with a name of a secret are hidden."""
    monkeypatch.setattr(view_plan, "_PRIVATE", (str(tmp_path),))
    for name in ("strict/a", "strict/id_rsa", "mixed/a", "mixed/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
        (tmp_path / name).chmod(0o600)
    (tmp_path / "mixed/b").chmod(0o644)
    hidden = ToolFolders().hidden([str(tmp_path)], [str(tmp_path / "strict"), str(tmp_path / "mixed")])
    assert hidden == [str(tmp_path / "mixed/a"), str(tmp_path / "strict/id_rsa")]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("[user]\n\tname = me\n", False),
        ("[remote]\n\turl = https://me:key@host/x\n", True),
        ("[remote]\n\turl = https://host/x?private=1\n", True),
        ("[http]\n\textraHeader = x\n", True),
        ("[x]\n\tPassWord = x\n", True),
    ],
)
def test_settings_of_git_with_a_credential_are_hidden(tmp_path: Path, text: str, hidden: bool) -> None:
    for folder in ("clone/.git", "bare"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config").write_text(text)
        (tmp_path / folder / "HEAD").write_text("ref: x\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config").write_text(text)
    paths = ["bare/config", "clone/.git/config"] if hidden else []
    assert ToolFolders().hidden([str(tmp_path)]) == [str(tmp_path / path) for path in paths]
    os.unlink(tmp_path / "bare/HEAD")
    assert ToolFolders().hidden([str(tmp_path)]) == [str(tmp_path / path) for path in paths[1:]]

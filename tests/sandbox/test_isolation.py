"""The rungs below the overlay: what they do, what they keep out, and what is said of them."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tui_agent.files.private import make_temporary, own_place
from tui_agent.sandbox import isolation, namespace_view
from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.hidden_files import HiddenFiles
from tui_agent.sandbox.isolation import (
    ORDER,
    WITHOUT,
    LandlockCopy,
    MacCopy,
    RunFolder,
    Rung,
    below,
    landlock_rules,
    mac_profile,
    make_copy,
    probe,
    runner_for,
    sweep,
)
from tui_agent.sandbox.namespace_view import View
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.sandbox.view_plan import MEGABYTE, Limits, NoView, Seed, ViewPlan, plan
from tui_agent.store.commands import Isolated

PROBES = Path(__file__).parents[1] / "support" / "probes.py"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "work"
    (root / "folder").mkdir(parents=True)
    (root / "a.txt").write_text("old\n")
    (root / "gone.txt").write_text("gone\n")
    (root / ".env").write_text("TOKEN=1\n")
    (root / "folder" / "b.txt").write_text("b\n")
    os.symlink(root / "a.txt", root / "link")
    yield root
    while PLANNED:
        PLANNED.pop().remove()


async def on_a_copy(
    root: Path, command: str, *seeds: Seed, timeout: float = 30, limits: Limits | None = None
) -> RunResult:
    """Run it under Landlock, and remove its folder."""
    hidden = [Seed(path, "hidden") for path in HiddenFiles(str(root)).paths()]
    own = RunFolder(root.parent / "trials")
    made = plan(root, seeds=(*seeds, *hidden), limits=limits, isolated="landlock", folder=own.path)
    chosen, _ = variables(made.root, made.places, os.environ)
    try:
        return await Run(timeout).alone(runner_for(made), ["/bin/sh", "-c", command], chosen)
    finally:
        own.remove()


def text(result: RunResult) -> str:
    return result.output.content().decode()


async def test_a_copy_holds_what_is_pending_and_tells_what_was_written(root: Path) -> None:
    result = await on_a_copy(
        root,
        "cat a.txt new/c.txt link; ls; echo more >> a.txt; rm -r folder; mv link there; chmod +x new/c.txt; touch x",
        Seed("a.txt", "file", b"new\n"),
        Seed("new/c.txt", "file", b"c\n"),
        Seed("gone.txt", "gone"),
    )
    assert text(result) == "new\nc\nnew\na.txt\nfolder\nlink\nnew\n", text(result)
    assert [(each.path, each.kind) for each in result.changes] == [
        ("a.txt", "changed"),
        ("folder/b.txt", "deleted"),
        ("link", "deleted"),
        ("new/c.txt", "mode"),
        ("there", "link"),
        ("x", "new"),
    ]
    assert (root / "a.txt").read_text() == "old\n"
    assert os.listdir(root.parent / "trials") == []


async def test_nothing_outside_can_be_reached_from_a_copy(root: Path) -> None:
    secret, path = root.parent / "key", str(root.parent / "socket")
    secret.write_text("a key")
    shutil.copy(PROBES, root / "probes.py")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path)
        unix.listen()
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{path}")
            abstract.listen()
            given = (server.getsockname()[1], path, os.getpid(), secret)
            arguments = " ".join(shlex.quote(str(each)) for each in given)
            real = shlex.quote(str(root / "a.txt"))
            result = await on_a_copy(
                root, f"{shlex.quote(sys.executable)} probes.py {arguments}; echo x > {real}; cat {real}"
            )
    assert json.loads(text(result).partition("\n")[0]) == [], text(result)
    assert (root / "a.txt").read_text() == "old\n"
    assert "old" not in text(result)


async def test_limits_and_what_is_left_running_end_on_a_copy_too(root: Path) -> None:
    result = await on_a_copy(root, "(setsid nohup sleep 4322 >/dev/null 2>&1 &); echo done")
    assert (text(result), result.left) == ("done\n", ("sleep",))
    result = await on_a_copy(root, "setsid sleep 4322 & sleep 60", timeout=0.3)
    assert result.how == "time-out"
    limits = Limits(memory=300 * MEGABYTE, processes=40)
    result = await on_a_copy(root, "for i in $(seq 80); do sleep 4322 & done; wait", limits=limits)
    assert result.how == "processes"
    commands = [Path(f"/proc/{name}/cmdline") for name in os.listdir("/proc") if name.isdigit()]
    assert not any(b"4322" in path.read_bytes() for path in commands if path.exists())


async def test_a_large_folder_is_not_copied_unasked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "MOST_FILES", 3)
    with pytest.raises(NoView, match="more than 3 files"):
        await on_a_copy(root, "true")


async def test_each_is_tried_in_its_turn_and_says_why_the_one_above_was_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(namespace_view.shutil, "which", lambda name: None)
    rung = await probe({WITHOUT: "overlay"})
    assert rung.isolated == "landlock"
    assert rung.why == f"own namespaces: switched off by {WITHOUT}; bubblewrap: it is not installed"
    assert "weaker" in rung.in_words()
    rung = await probe({WITHOUT: "overlay,bubblewrap"}, {"landlock": "it is too large"})
    assert rung.isolated == "none"
    assert "Landlock: it is too large" in rung.why
    assert "what they write stays" in rung.in_words()


def test_what_a_killed_program_left_is_removed_and_what_runs_is_not(tmp_path: Path) -> None:
    """A folder is another program's as long as that holds its lock."""
    script = (
        "import os, pathlib, sys; from tui_agent.sandbox.isolation import RunFolder;"
        "f = RunFolder(pathlib.Path(sys.argv[1])); os.mkdir(f.path + '/closed', 0); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    own = RunFolder(tmp_path)
    assert len(os.listdir(tmp_path)) == 2
    opened = len(os.listdir("/proc/self/fd"))
    assert sweep(tmp_path) == 1
    assert len(os.listdir("/proc/self/fd")) == opened
    assert os.listdir(tmp_path) == [os.path.basename(own.path)]
    own.remove()


PLANNED: list[RunFolder] = []


def planned(root: Path, isolated: Isolated) -> ViewPlan:
    own = RunFolder(root.parent / "trials")
    PLANNED.append(own)
    seeds = [Seed("a.txt", "file", b"new\n"), Seed("gone.txt", "gone")]
    return plan(root, seeds=seeds, isolated=isolated, folder=own.path)


def test_bubblewrap_is_told_all_of_the_plan(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Covering mounts come last, nothing is writable but layers and memory, and no power is kept."""
    monkeypatch.setattr(namespace_view.shutil, "which", lambda name: "/usr/bin/bwrap")
    made = planned(root, "bubblewrap")
    told = namespace_view.command(made, ["/package"], ["inner"])
    assert told[-2:] == ["--", "inner"]
    line = " ".join(told)
    layer = f"{made.folder}/{len(made.overlays) - 1}"
    assert f"--overlay-src {root} --overlay {layer}/u {layer}/w {root}" in line
    for words in (
        "--unshare-net",
        "--unshare-pid",
        "--cap-drop ALL",
        "--die-with-parent",
        "--ro-bind /package",
    ):
        assert words in line
    assert line.index("--tmpfs /tmp") < line.index(f"{layer}/u") < line.index("--proc /proc")
    assert line.endswith("--proc /proc --remount-ro /proc --remount-ro / -- inner")
    assert "--bind" not in told
    assert Path(layer, "u", "a.txt").read_text() == "new\n"
    assert Path(layer, "u", "gone.txt").is_char_device()


@pytest.mark.parametrize(
    ("said", "old"), [("bubblewrap 0.8.0", True), ("bubblewrap 0.11.0", False), ("", True)]
)
def test_an_old_bubblewrap_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, old: bool
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho {said}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if not old:
        namespace_view.check()
        return
    with pytest.raises(NoView, match=r"has overlays from 0\.11 on"):
        namespace_view.check()


def test_the_profile_of_macos_begins_with_nothing(root: Path) -> None:
    made = planned(root, "sandbox-exec")
    told = mac_profile(made).splitlines()
    assert told[1] == "(deny default)"
    assert f'(allow file-read* file-write* (subpath "{made.folder}"))' in told
    assert not any("network" in line and "allow" in line for line in told)
    writable = [line for line in told if "file-write" in line and made.folder not in line]
    assert all("/dev/" in line for line in writable)


def test_the_folder_of_a_start_that_was_killed_is_removed_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # in the common folder others remove it, too
    child = os.fork()
    if child == 0:
        try:
            make_temporary()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    (left,) = Path(own_place()).glob(f"{child}-*")

    async def refused(view: View) -> View:
        raise NoView("new namespaces", errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(View, "__aenter__", refused)
    asyncio.run(probe({WITHOUT: "bubblewrap,landlock"}))
    assert not left.exists()


async def test_why_there_is_no_view_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a view namespaces are switched off: the tests of this program meet it there."""

    async def refused(view: View) -> View:
        raise NoView("new namespaces", errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(View, "__aenter__", refused)
    rung = await probe({WITHOUT: "bubblewrap,landlock"})
    assert rung.isolated == "none"
    assert rung.why.startswith("own namespaces: namespaces are switched off here (")


@pytest.mark.parametrize(
    ("step", "number", "words"),
    [
        ("new namespaces", errno.ENOSPC, "namespaces are switched off here"),
        ("new namespaces", errno.ENOSYS, "this kernel has no namespaces"),
        ("new namespaces", errno.EINVAL, "this kernel has no namespaces of users"),
        ("new namespaces", errno.EPERM, "namespaces are not permitted here, as in most containers"),
        ("map users", errno.EACCES, "namespaces are not permitted here, as in most containers"),
        ("write /proc/self/uid_map", errno.EPERM, "namespaces are not permitted here, as in most containers"),
        ("mount tmpfs", errno.EPERM, "what they may do in namespaces is restricted here, as AppArmor does"),
        ("write /etc", errno.EACCES, "what they may do in namespaces is restricted here, as AppArmor does"),
        ("create overlay", errno.EINVAL, "no layer can be laid over this file system"),
        ("create overlay", 0, ""),
        ("open /usr", errno.ENOSYS, "this kernel is too old"),
        ("open /usr", errno.ENOENT, ""),
    ],
)
def test_the_step_that_failed_is_explained(step: str, number: int, words: str) -> None:
    told = isolation._in_words(NoView(step, number, "why"))
    assert told == (f"{words} ({step}: why)" if words else f"{step}: why")


def test_kinds_of_views_are_in_order_and_have_their_runner(root: Path) -> None:
    assert [below("landlock", other) for other in ORDER] == [True, True, False, False, False]
    made = planned(root, "landlock")
    kinds = [type(runner_for(replace(made, isolated=one))) for one in ORDER]
    assert kinds == [View, View, LandlockCopy, MacCopy, View]
    assert Rung("overlay").in_words() == f"trial runs: {isolation.WORDS['overlay']}"
    assert Rung("none", "a reason").in_words().endswith(" (a reason)")


@pytest.mark.parametrize(
    ("platform", "why"),
    [
        ("darwin", f"sandbox-exec: switched off by {WITHOUT}"),
        ("linux", f"own namespaces: switched off by {WITHOUT}; bubblewrap: b; Landlock: c"),
        ("win32", "there are no views on win32"),
    ],
)
async def test_each_system_has_its_own_kinds(
    monkeypatch: pytest.MonkeyPatch, platform: str, why: str
) -> None:
    monkeypatch.setattr(isolation.sys, "platform", platform)
    rung = await probe({WITHOUT: "sandbox-exec,overlay"}, {"bubblewrap": "b", "landlock": "c"})
    assert rung == Rung("none", why)


def test_bubblewrap_is_told_of_masks_stores_and_texts(root: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "key").touch()
    (tmp_path / "leads").symlink_to("key")
    base = replace(
        planned(root, "bubblewrap"),
        binds=("/usr", "/opt"),
        folders=(("/tmp", 0o1777, 10), ("/opt/home", 0o700, 20)),
        links={"/bin": "usr/bin"},
        overlays=(str(root),),
        stores={"/run/s": "/state/s"},
        texts={"/home/t": b"text"},
        masks=tuple(str(tmp_path / name) for name in ("closed", "key", "leads", "missing")),
        limits=Limits(30, 1, 1, 1),
    )
    told = namespace_view.arguments(base, ["/package"])
    line = " ".join(told)
    wanted = (
        "--unshare-net --perms 1777 --size 10 --tmpfs /tmp --symlink usr/bin /bin --ro-bind /usr /usr "
        "--ro-bind /opt /opt --perms 700 --size 20 --tmpfs /opt/home --ro-bind /package /package "
        f"--ro-bind /state/s /run/s --ro-bind {base.folder}/text0 /home/t "
        f"--overlay-src {root} --overlay {base.folder}/0/u {base.folder}/0/w {root} "
        "--dev /dev --size 30 --tmpfs /dev/shm "
        f"--tmpfs {tmp_path}/closed --remount-ro {tmp_path}/closed --ro-bind {base.folder}/empty {tmp_path}/key "
        "--proc /proc --remount-ro /proc --remount-ro /"
    )
    assert line.endswith(wanted)
    assert Path(base.folder, "text0").read_bytes() == b"text"
    assert Path(base.folder, "empty").read_bytes() == b""
    assert "--unshare-net" not in namespace_view.arguments(replace(base, network=True), [])


def test_a_copy_has_modes_times_links_and_pending_files(root: Path) -> None:
    (root / "a.txt").chmod(0o751)
    os.utime(root / "a.txt", (5, 5))
    (root / "folder").chmod(0o511)
    os.symlink("folder/b.txt", root / "relative")
    os.symlink("/etc/passwd", root / "outside")
    os.mkfifo(root / "pipe")
    own = RunFolder(root.parent / "trials")
    seeds = [
        Seed("folder/b.txt", "file", b"new\n"),
        Seed("new/c.txt", "file", b"c\n"),
        Seed("new/d.txt", "file", b"d\n", 0o700),
        Seed("gone.txt", "gone"),
        Seed("never.txt", "gone"),
        Seed(".env", "hidden", b"masked\n"),
        Seed("other", "file", b"elsewhere", overlay="/other"),
        Seed("link/../../x", "file", b"outside"),
        Seed("owned.txt", "owned"),
    ]
    made = replace(plan(root, isolated="landlock", folder=own.path), seeds=tuple(seeds))
    made = replace(made, texts={f"{made.home}/.config/git/config": b"[user]\n"})
    try:
        states = make_copy(made)
        copy = Path(made.root)
        listed = sorted(os.path.relpath(one, copy) for one in copy.rglob("*") if not one.is_dir())
        assert listed == sorted(states) == [
            ".env", "a.txt", "folder/b.txt", "link", "new/c.txt", "new/d.txt", "outside", "relative",
        ]  # fmt: skip
        status = (copy / "a.txt").stat()
        assert (stat.S_IMODE(status.st_mode), status.st_mtime) == (0o751, 5)
        assert states["a.txt"] == (status.st_size, status.st_mtime_ns, status.st_mode)
        assert stat.S_IMODE((copy / "folder").stat().st_mode) == 0o711
        assert [os.readlink(copy / name) for name in ("link", "relative", "outside")] == [
            f"{copy}/a.txt",
            "folder/b.txt",
            "/etc/passwd",
        ]
        modes = [stat.S_IMODE((copy / name).stat().st_mode) for name in (".env", "new/c.txt", "new/d.txt")]
        assert modes == [0o644, 0o644, 0o700]
        assert (copy / ".env").read_text() == "masked\n"
        assert not (copy.parent / "x").exists()
        home = Path(made.places["HOME"])
        assert (home / ".config/git/config").read_bytes() == b"[user]\n"
        assert [stat.S_IMODE(os.stat(one).st_mode) for one in (copy, home, made.places["TMPDIR"])] == [
            0o700
        ] * 3
    finally:
        own.remove()


@pytest.mark.parametrize(("files", "less", "fits"), [(4, 0, True), (3, 0, False), (4, 1, False)])
def test_a_copy_has_a_limit_of_files_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, less: int, fits: bool
) -> None:
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    for name in ("a", "b", "d/c"):
        (root / name).write_bytes(b"123")
    monkeypatch.setattr(isolation, "MOST_FILES", files)
    size = sum(one.lstat().st_size for one in root.rglob("*"))
    monkeypatch.setattr(isolation, "MOST_BYTES", size - less)
    own = RunFolder(tmp_path / "trials")
    made = plan(root, isolated="landlock", folder=own.path)
    try:
        if fits:
            assert len(make_copy(made)) == 3
        else:
            with pytest.raises(NoView, match="a copy would be of more than"):
                make_copy(made)
    finally:
        own.remove()


def test_under_landlock_masks_are_cut_out_of_what_can_be_read(root: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    for path in ("bin/x", "key/y", "deep/a/z", "deep/b/z"):
        (tools / path).parent.mkdir(parents=True)
        (tools / path).touch()
    (tools / "leads").symlink_to("key")
    (root / "venv").mkdir()
    made = replace(
        planned(root, "landlock"),
        binds=("/usr", str(tools)),
        masks=(f"{tools}/key", f"{tools}/deep/a"),
        stores={"/run/s": "/state/s"},
        overlays=(f"{tools}/deep/b", str(root)),
        home="/home/none",
    )
    rules = landlock_rules(made)
    below_tools = sorted({path for path in rules["readable"] if path.startswith(str(tools))})
    assert below_tools == [f"{tools}/bin", f"{tools}/deep/b"]
    assert [path for path in rules["listed"] if path.startswith(str(tools))] == [str(tools), f"{tools}/deep"]
    assert {"/usr", "/state/s", "/proc/cpuinfo", f"{root}/venv"} <= set(rules["readable"])
    assert "/dev/null" in rules["devices"]
    assert rules["writable"] == [made.folder]
    assert str(root) not in rules["readable"]


def test_the_profile_of_macos_has_a_network_only_if_asked_for_and_quotes_paths(root: Path) -> None:
    made = replace(planned(root, "sandbox-exec"), network=True, masks=('/a "b\\c',))
    told = mac_profile(made).splitlines()
    assert "(allow network*)" in told
    assert '(deny file-read* (subpath "/a \\"b\\\\c"))' in told
    assert f'(deny file-read* (subpath "{root}"))' in told

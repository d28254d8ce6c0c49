"""What builds keep between views: used again, never out of date, never offered, bounded, thrown away."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.sessions import open_session

from tui_agent.errors import SessionError
from tui_agent.sandbox import build_cache
from tui_agent.sandbox.build_cache import BorrowedLayer, KeptLayer, RunLayer, key_of
from tui_agent.sandbox.isolation import runner_for
from tui_agent.sandbox.run import Run, RunResult
from tui_agent.sandbox.view_plan import MEGABYTE, Seed, plan

#: A build as make does it: made again where the source is newer. It says what it has done.
BUILD = (
    "mkdir -p target; touch target/CACHEDIR.TAG; "
    "if [ target/out -nt src.txt ]; then echo fresh; else cp src.txt target/out; echo built; fi; cat target/out"
)


#: No tools of the person, for which each view would look.
ENVIRON = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}


class Views:
    """Commands in views of one folder, over what they keep."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "work"
        self.root.mkdir()
        self.state = tmp_path / "state"
        self.most = 10 * MEGABYTE
        self.values = ()
        self.write("src.txt", "one\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    @property
    def layer(self) -> KeptLayer:
        return KeptLayer(self.state, str(self.root), self.most)

    @property
    def paths(self) -> list[str]:
        return [
            os.path.relpath(one, self.root)
            for one in self.root.rglob("*")
            if one.is_file() and "target" not in one.parts
        ]

    async def run(self, command: str, *seeds: Seed, ignored: tuple[str, ...] = ()) -> RunResult:
        made = plan(self.root, seeds=seeds, environ=ENVIRON)
        pending = any(seed.kind != "hidden" for seed in seeds)
        lent = self.layer.borrow(key_of(seeds, self.values), self.paths, clean=not pending, command=command)
        if lent is None:
            return await Run(30).alone(runner_for(made), ["/bin/sh", "-c", command], ENVIRON)
        told: asyncio.Future[set[str]] = asyncio.get_running_loop().create_future()
        told.set_result(set(ignored))
        try:
            runner = runner_for(made, RunLayer(lent, told))
            return await Run(30).alone(runner, ["/bin/sh", "-c", command], ENVIRON)
        finally:
            lent.close()

    async def says(self, command: str, *seeds: Seed) -> str:
        return (await self.run(command, *seeds)).output.content().decode()


@pytest.fixture
def views(tmp_path: Path) -> Views:
    return Views(tmp_path)


async def test_a_build_goes_on_where_the_last_one_ended_and_is_nobodys_proposal(views: Views) -> None:
    first = await views.run(f"{BUILD}; echo new > new.txt")
    assert first.output.content() == b"built\none\n"
    assert [change.path for change in first.changes] == ["new.txt"]
    assert await views.says(BUILD) == "fresh\none\n"
    assert sorted(path.name for path in views.root.iterdir()) == ["src.txt"]


async def test_a_changed_source_is_built_again_and_so_is_one_that_is_changed_back(views: Views) -> None:
    assert await views.says(BUILD) == "built\none\n"
    views.write("src.txt", "two\n")
    assert await views.says(BUILD) == "built\ntwo\n"
    views.write("src.txt", "one\n")
    assert await views.says(BUILD) == "built\none\n"
    assert await views.says(BUILD) == "fresh\none\n"


async def test_what_is_pending_is_built_each_time_and_leaves_nothing_behind(views: Views) -> None:
    pending = Seed("src.txt", "file", b"pending\n")
    assert await views.says(BUILD) == "built\none\n"
    assert await views.says(BUILD, pending) == "built\npending\n"
    assert await views.says(BUILD, pending) == "built\npending\n"
    assert await views.says(BUILD) == "fresh\none\n"


async def old_file_moved_in(views: Views) -> str:
    views.write("src.old", "older\n")
    os.utime(views.root / "src.old", (1, 1))
    await views.run(BUILD)
    os.replace(views.root / "src.old", views.root / "src.txt")
    return "built\nolder\n"


async def old_time_set(views: Views) -> str:
    views.write("src.txt", "older\n")
    os.utime(views.root / "src.txt", (1, 1))
    return "built\nolder\n"


async def built_outside(views: Views) -> str:
    views.write("target/out", "outside\n")
    return "fresh\noutside\n"


async def other_secrets(views: Views) -> str:
    views.write(".env", "")
    return "built\none\n"


@pytest.mark.parametrize("happened", [old_file_moved_in, old_time_set, built_outside, other_secrets])
async def test_what_a_build_could_not_see_throws_it_away(
    views: Views, happened: Callable[[Views], Awaitable[str]]
) -> None:
    await views.run(BUILD)
    expected = await happened(views)
    hidden = [Seed(".env", "hidden")] if (views.root / ".env").exists() else []
    assert await views.says(BUILD, *hidden) == expected
    assert await views.says(BUILD, *hidden) == expected.replace("built", "fresh")


@pytest.mark.parametrize(
    "command",
    [
        f"echo other > src.txt; {BUILD}",
        f"cp -p src.txt /tmp/s; echo other > src.txt; {BUILD}; cat /tmp/s > src.txt; touch -r /tmp/s src.txt",
        f"mv src.txt /tmp/s; echo other > src.txt; {BUILD}; rm src.txt; cp -p /tmp/s src.txt",
    ],
    ids=["written", "and put back", "moved away and back"],
)
async def test_what_was_built_of_something_else_is_not_kept(views: Views, command: str) -> None:
    await views.run(command)
    assert await views.says("ls") == "src.txt\n"


async def test_files_links_and_deletions_are_kept_as_they_are(views: Views) -> None:
    views.write("target/mine/a", "mine\n")
    os.utime(views.root / "target/mine/a", (1, 1))
    await views.run(
        f"{BUILD}; rm -r target/mine; ln -s /etc target/link; ln target/out target/two; chmod 755 target/out; "
        "mkfifo target/pipe; mkdir -p target/deep/er; echo x > target/deep/er/x"
    )
    look = "cd target; ls; readlink link; stat -c %a,%h out; [ out -ef two ] && cat deep/er/x"
    assert await views.says(look) == "CACHEDIR.TAG\ndeep\nlink\nout\ntwo\n/etc\n755,2\nx\n"
    await views.run("rm -r target/deep; mkdir target/deep; rm target/link")
    assert (
        await views.says("ls target target/deep") == "target:\nCACHEDIR.TAG\ndeep\nout\ntwo\n\ntarget/deep:\n"
    )
    await views.run("rm -rf target")
    assert await views.says("ls") == "src.txt\n"
    assert (views.root / "target/mine/a").read_text() == "mine\n"


async def test_a_link_in_the_place_of_a_folder_leads_nowhere(views: Views) -> None:
    (views.root.parent / "outside/.cache").mkdir(parents=True)
    (views.root.parent / "outside/.cache/key").write_text("secret")
    await views.run(f"ln -s {views.root.parent}/outside node_modules; ln -s /etc .mypy_cache")
    assert await views.says("ls -A") == "src.txt\n"
    assert not list(views.state.rglob("key"))


async def test_only_folders_that_tools_have_marked_or_git_ignores_are_kept(views: Views) -> None:
    written = await views.run(
        "mkdir -p build/b out .mypy_cache/d; echo a > build/a; echo b > out/b; echo c > .mypy_cache/c"
    )
    assert [change.path for change in written.changes] == ["build/a", "out/b"]
    assert await views.says("ls -A") == ".mypy_cache\nsrc.txt\n"
    written = await views.run("mkdir -p build; echo a > build/a", ignored=("build/a",))
    assert written.changes == ()
    assert await views.says("cat build/a") == "a\n"
    assert await views.says("mkdir build && ls build") == ""  # as the command expects it
    assert await views.says("mkdir build/b; cat build/a") == "a\n"
    views.write("build/own.txt", "the person's\n")
    (views.root / "target").symlink_to(views.root.parent)
    written = await views.run(
        "echo b > build/b; touch build/CACHEDIR.TAG; rm target; mkdir target; echo c > target/c"
    )
    assert [change.path for change in written.changes] == [
        "build/CACHEDIR.TAG",
        "build/b",
        "target",
        "target/c",
    ]


async def test_what_is_too_large_is_thrown_away(views: Views) -> None:
    views.most = 100_000
    await views.run(f"{BUILD}; head -c 80000 /dev/zero > target/a")
    assert await views.says(f"ls target; {BUILD}") == "CACHEDIR.TAG\na\nout\nfresh\none\n"
    await views.run("head -c 80000 /dev/zero > target/b")
    assert await views.says("ls") == "src.txt\n"


async def test_it_is_thrown_away_by_command_but_not_under_one_that_runs(views: Views) -> None:
    await views.run(BUILD)
    lent = views.layer.borrow(key_of((), ()), views.paths, clean=True, command="")
    assert lent is not None and lent.folder
    with pytest.raises(OSError):
        views.layer.delete()
    lent.close()
    assert views.layer.delete() is True
    assert await views.says("ls") == "src.txt\n"


async def test_commands_of_a_session_keep_builds_but_not_the_models_and_forget_them_by_command(
    tmp_path: Path,
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "src.txt").write_text("one\n")
    async with open_session(root) as session:
        for by, expected in (
            ("model", "built\none\n"),
            ("person", "built\none\n"),
            ("check", "fresh\none\n"),
        ):
            await session.commands.run(BUILD, by=by)
            await session.commands.ended()
            result = session.state.commands.results[-1]
            assert (result.output, result.changed) == (expected, ())
        with pytest.raises(SessionError):
            await session.commands.take()
        await session.commands.forget_builds()
        await session.commands.run("ls")
        await session.commands.ended()
        assert session.state.commands.results[-1].output == "src.txt\n"


def borrowed(views: Views, **changed: object) -> BorrowedLayer | None:
    given: dict = {"key": "k", "paths": views.paths, "clean": True, "command": "make"} | changed
    return views.layer.borrow(given["key"], given["paths"], clean=given["clean"], command=given["command"])


@pytest.mark.parametrize(
    ("command", "fits"),
    [
        ("make", True),
        ("mkdir target", False),
        ("mkdir ./build/", False),
        ("cmake -B x; test -d 'target'", False),
        ("mkdir target2", True),
        ("mkdir -p target", True),
        ("mkdir target/x", True),
        ("ls target", True),
    ],
)
def test_a_command_that_makes_a_kept_folder_itself_has_no_layer(
    views: Views, command: str, fits: bool
) -> None:
    lent = borrowed(views, command=command)
    assert (lent is not None) is fits
    if lent is not None:
        lent.close()


def test_a_layer_is_for_one_writer_and_for_folders_of_some_size(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_cache, "MOST_FILES", 1)
    assert borrowed(views, paths=["a", "b"]) is None
    first, second = borrowed(views, paths=["a"]), borrowed(views)
    assert first is not None and second is not None
    assert first.folder == second.folder == ""
    fcntl.flock(first.lock, fcntl.LOCK_UN)
    fcntl.flock(second.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert borrowed(views) is None
    first.close()
    second.close()
    views.most = 0
    assert borrowed(views) is None
    views.most = 1
    assert views.layer.delete() is False
    assert KeptLayer(views.state / "other", "x", 1).delete() is False


def test_a_key_depends_on_hidden_files_and_variables() -> None:
    seeds = [Seed("a", "hidden", b"1"), Seed("b", "hidden", b"2")]
    same = key_of(seeds, ["x", "y"])
    assert key_of(reversed(seeds), ["y", "x"]) == same
    assert key_of([*seeds, Seed("c", "file", b"3"), Seed(".git/config", "hidden", b"4")], ["x", "y"]) == same
    others = [
        key_of(seeds, ["x"]),
        key_of(seeds[:1], ["x", "y"]),
        key_of([seeds[0], Seed("b", "hidden", b"3")], ["x", "y"]),
        key_of([seeds[0], Seed("c", "hidden", b"2")], ["x", "y"]),
        key_of([seeds[0], Seed("b", "hidden", b"2", overlay="/o")], ["x", "y"]),
    ]
    assert len({same, *others}) == 6


def test_a_tree_is_walked_to_a_depth_and_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").touch()
    (tmp_path / "link").symlink_to("a")
    monkeypatch.setattr(build_cache, "DEEPEST", 2)
    monkeypatch.setattr(build_cache, "MOST_ENTRIES", 4)
    assert sorted(path for path, _ in build_cache._walk(str(tmp_path))) == ["a", "a/b", "a/b/c", "link"]
    monkeypatch.setattr(build_cache, "DEEPEST", 1)
    with pytest.raises(build_cache._NotCacheable, match="deep"):
        list(build_cache._walk(str(tmp_path)))
    monkeypatch.setattr(build_cache, "DEEPEST", 2)
    monkeypatch.setattr(build_cache, "MOST_ENTRIES", 3)
    with pytest.raises(build_cache._NotCacheable, match="much"):
        list(build_cache._walk(str(tmp_path)))
    layer = KeptLayer(tmp_path / "parent", str(tmp_path.parent), MEGABYTE)

    def is_current(name: str, began: int) -> bool:
        known = build_cache._LayerInfo("", began, 0, (name,), {})
        return layer._is_current(known, [], [name])

    assert is_current(tmp_path.name, 1 << 62) is False  # It cannot be known.
    monkeypatch.setattr(build_cache, "MOST_ENTRIES", 4)
    assert is_current(tmp_path.name, 1 << 62) is True
    assert is_current(tmp_path.name, 0) is False
    assert is_current("missing", 0) is True


def test_a_link_anywhere_on_a_path_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "first").symlink_to("a")
    (tmp_path / "a/last").symlink_to("b")
    names = ("a/b", "first/b", "a/last", "first", "missing/x")
    found = [name for name in names if build_cache._through_link(str(tmp_path), name)]
    assert found == ["first/b", "a/last", "first"]


def test_a_tree_without_rights_is_removed_and_a_link_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "tree/closed").mkdir(parents=True)
    (tmp_path / "tree/closed/x").touch()
    (tmp_path / "tree/closed").chmod(0)
    (tmp_path / "tree/link").symlink_to("../kept")
    (tmp_path / "link").symlink_to("kept")
    for name in ("tree", "link", "missing"):
        build_cache._remove_tree(str(tmp_path / name))
    assert os.listdir(tmp_path) == ["kept"]

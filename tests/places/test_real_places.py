"""Places of real kinds: an sshd on loopback, podman and docker where they can run a container, and stand-ins of srun
and kubectl that only start the command."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from support.places import ENGINES, IMAGE, SLEEP, all_ended, container_words, places, when_printed
from support.sessions import open_session
from support.ssh_server import PROGRAM, FarHost, far_host

from tui_agent.places.place import place_of
from tui_agent.places.proof import PlaceProof
from tui_agent.settings.schema import PlaceSettings
from tui_agent.store.commands import CommandResult


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my work"
    (root / "src").mkdir(parents=True)
    (root / "a.py").write_text("print(1)\n")
    (root / "src" / "b.py").write_text("print('b')\n")
    return root


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[FarHost]:
    assert PROGRAM, "install the OpenSSH server"
    with far_host(tmp_path / "far", tmp_path / "home") as host:
        monkeypatch.setenv("PATH", f"{host.folder / 'near'}:{os.environ['PATH']}")
        yield host


async def ran(root: Path, place: Mapping[str, object], *commands: str) -> list[CommandResult]:
    async with open_session(root, [], overrides=places(place)) as session:
        for command in commands:
            await session.commands.run(f"@there {command}")
            await session.commands.ended()
        return list(session.state.commands.results)


@pytest.mark.parametrize("copy", ["bundle", "rsync"])
async def test_a_host(root: Path, far: FarHost, copy: str) -> None:
    if copy == "rsync" and not shutil.which("rsync"):
        raise pytest.skip.Exception("rsync is not installed")
    place: Mapping[str, object] = {"name": "there", "run": "ssh -q far {command}", "copy": copy}
    first, second, third = await ran(
        root,
        place,
        'pwd; cat a.py src/b.py; echo "it\'s $HOME"',
        "echo print(2) > a.py; rm src/b.py; echo new > 'src/n n.py'",
        "cat a.py src/b.py; ls src",
    )
    assert first.output.startswith(str(far.folder / ".cache" / "tui-agent" / "places"))
    assert first.output.endswith(f"/my work\nprint(1)\nprint('b')\nit's {far.folder}\n")
    assert second.status == 2  # The shell there does not accept it, and nothing here has changed it.
    assert third.output == "print(1)\nprint('b')\nb.py\n"
    (changed,) = await ran(root, place, "echo 'print(2)' > a.py; rm src/b.py; echo new > 'src/n n.py'")
    assert changed.changed == ("a.py", "src/b.py", "src/n n.py")
    folder = far.folder / ".cache" / "tui-agent" / "places"
    assert folder.stat().st_mode & 0o077 == 0


async def test_a_program_that_a_host_starts(root: Path, far: FarHost) -> None:
    """A stand-in of a container there: it has the copy, and another home."""
    run = "ssh far env -i PATH=/usr/bin:/bin HOME=/none TMPDIR=/none env -C {view} A=5 {command}"
    place: Mapping[str, object] = {"name": "there", "run": run, "copy": "bundle"}
    (first,) = await ran(root, place, "cat a.py; echo $A; echo new > n")
    assert (first.output, first.how, first.changed) == ("print(1)\n5\n", "exit", ("n",))
    shutil.rmtree(far.folder / ".cache")
    (again,) = await ran(root, place, "ls")
    assert (again.output, again.how) == ("a.py\nsrc\n", "exit")


async def test_only_what_changed_is_sent_again(root: Path, far: FarHost) -> None:
    place: Mapping[str, object] = {"name": "there", "run": "ssh far {command}", "copy": "bundle"}
    for number in range(200):
        (root / f"f{number}").write_text(str(number))
    (first,) = await ran(root, place, "ls | wc -l; stat -c %Z f7")
    (copy,) = (far.folder / ".cache" / "tui-agent" / "places").glob("*/tree/my work")
    before = {path.name: path.stat().st_ino for path in copy.glob("f*")}
    (root / "f7").write_text("seven")
    (second,) = await ran(root, place, "cat f7; ls | wc -l")
    assert first.output.startswith("202\n")
    assert second.output == "seven202\n"
    after = {path.name: path.stat().st_ctime_ns for path in copy.glob("f*")}
    assert {name for name, inode in before.items() if (copy / name).stat().st_ino != inode} <= {"f7"}
    assert len({after[name] for name in before if name != "f7"} & {after["f7"]}) == 0


async def test_a_copy_that_was_deleted_or_changed_there_is_sent_anew(root: Path, far: FarHost) -> None:
    place: Mapping[str, object] = {"name": "there", "run": "ssh far {command}", "copy": "bundle"}
    await ran(root, place, "true")
    shutil.rmtree(far.folder / ".cache")
    (again,) = await ran(root, place, "cat a.py")
    assert (again.output, again.how) == ("print(1)\n", "exit")


@pytest.mark.parametrize("how", ["a stop", "a cut line"])
async def test_nothing_is_left_on_a_host(root: Path, far: FarHost, how: str) -> None:
    place: Mapping[str, object] = {"name": "there", "run": "ssh far {command}", "copy": "bundle"}
    async with open_session(root, [], overrides=places(place)) as session:
        begun = asyncio.Event()
        session.subscribe(when_printed("begun", begun))
        await session.commands.run(f"@there trap '' TERM; setsid {SLEEP}1 & echo begun; {SLEEP}2")
        await asyncio.wait_for(begun.wait(), 30)
        asked = time.monotonic()
        if how == "a stop":
            await session.stop_everything()
            assert time.monotonic() - asked < 10
        else:
            far.drop()
            await session.commands.ended()
        result = session.state.commands.results[-1]
        assert result.how == ("stopped" if how == "a stop" else "place")
        await asyncio.to_thread(all_ended, SLEEP)


async def test_a_connection_that_ssh_keeps_holds_nothing_up(root: Path, far: FarHost) -> None:
    # With -v its process keeps standard error open, as with every version of ssh before 8.5.
    place: Mapping[str, object] = {"name": "there", "run": "ssh -v far {command}", "copy": "bundle"}
    with far.shared_connections():
        async with asyncio.timeout(40), open_session(root, [], overrides=places(place)) as session:
            begun = asyncio.Event()
            session.subscribe(when_printed("begun", begun))
            await session.commands.run("@there cat a.py; echo new > n")
            await session.commands.ended()
            await session.commands.run(f"@there echo begun; {SLEEP}3")
            await begun.wait()
            await session.stop_everything()
            first, second = session.state.commands.results
        assert (first.output, first.how, first.changed) == ("print(1)\n", "exit", ("n",))
        assert second.how == "stopped"
        await asyncio.to_thread(all_ended, SLEEP)


async def test_a_host_that_is_away(root: Path, far: FarHost) -> None:
    far.drop()
    far.stop()
    place = {"name": "there", "run": "ssh far {command}", "copy": "bundle"}
    async with open_session(root, [], overrides=places(place)) as session:
        with pytest.raises(Exception, match=r"The place there could not be used .*refused"):
            await session.commands.run("@there true")


#: The program, the place, and how the stand-in finds the command.
STAND_INS = {
    "srun": ("srun -N1 -n1 {command}", "shift 2", "mount"),
    "kubectl": ("kubectl exec -i pod/app -- {command}", "shift 4", "bundle"),
}


@pytest.mark.parametrize("name", STAND_INS)
async def test_a_queue_and_a_cluster(
    root: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, shift, copy = STAND_INS[name]
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / name
    apart = f"cd / && exec env -i PATH=/usr/bin:/bin HOME={tmp_path}" if copy == "bundle" else "exec"
    stand_in.write_text(f'#!/bin/sh\n{shift}\n{apart} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    place: Mapping[str, object] = {"name": "there", "run": run, "copy": copy}
    first, second = await ran(root, place, "cat a.py; touch new; exit 4", "ls")
    assert (first.output, first.status, first.changed) == ("print(1)\n", 4, ("new",))
    assert second.output == "a.py\nsrc\n"


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    words, why = container_words(tmp_path_factory.mktemp("image"), request.param)
    if why:
        raise pytest.skip.Exception(why)
    return words


@pytest.mark.parametrize("interactive", [True, False])
async def test_a_container(root: Path, engine: list[str], interactive: bool) -> None:
    more = ["-i"] if interactive else []
    run = [*engine, *more, "-v", "{view}:/app", "-w", "/app", IMAGE, "{command}"]
    place: Mapping[str, object] = {"name": "there", "run": " ".join(run)}
    async with open_session(root, [], overrides=places(place)) as session:
        await session.commands.run("@there cat a.py; pwd; echo new > n; id -u; exit 6")
        await session.commands.ended()
        first = session.state.commands.results[-1]
        assert (first.output, first.status, first.changed) == ("print(1)\n/app\n0\n", 6, ("n",))
        begun = asyncio.Event()
        session.subscribe(when_printed("begun", begun))
        await session.commands.run(f"@there trap '' TERM; echo begun; {SLEEP}1")
        await asyncio.wait_for(begun.wait(), 60)
        await session.stop_everything()
        assert session.state.commands.results[-1].how == "stopped"
        await asyncio.to_thread(all_ended, SLEEP)
    left = await asyncio.to_thread(subprocess.check_output, [engine[0], "ps", "-q"])
    assert left == b""


COMPOSE = f"""\
services:
  app:
    image: {IMAGE}
    network_mode: none
    volumes: {{mounts}}
"""


async def test_a_service_of_compose(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The proof of the place finds the file, too."""
    words, why = compose(tmp_path_factory.mktemp("image"))
    if why:
        raise pytest.skip.Exception(why)
    (root / "compose.yaml").write_text(COMPOSE.format(mounts="[]"))
    place = {"name": "there", "run": f"{words} run --rm -T -v {{view}}:/app -w /app app {{command}}"}
    (first,) = await ran(root, place, "cat a.py; pwd; echo new > n; exit 5")
    assert first.output.endswith("print(1)\n/app\n")
    assert (first.status, first.changed) == (5, ("n",))
    named = place_of(PlaceSettings("there", place["run"]))
    proof = PlaceProof(named, root.parent / "proof", dict(os.environ), str(root))
    steps = [step async for step in proof.steps()]
    assert [step.name for step in steps if step.ok] == ["reach", "run", "stop", "speed"], steps[-1]


@pytest.mark.parametrize("start", ["/app", "/app/src"])
async def test_a_mount_of_the_folder_itself_is_refused(
    root: Path, tmp_path_factory: pytest.TempPathFactory, start: str
) -> None:
    """Compose of version 1 takes either of two mounts on one path."""
    words, why = compose(tmp_path_factory.mktemp("image"))
    if why:
        raise pytest.skip.Exception(why)
    (root / "compose.yaml").write_text(COMPOSE.format(mounts='[".:/app"]'))
    place = {"name": "there", "run": f"{words} run --rm -T -v {{view}}:/view -w {start} app {{command}}"}
    (first,) = await ran(root, place, "echo new > n")
    assert first.how == "place"
    assert "Your folder is mounted there" in first.output
    assert not (root / "n").exists() and not (root / "src" / "n").exists()


def compose(folder: Path) -> tuple[str, str]:
    """The words that start compose, and the reason if it cannot be used."""
    _, why = container_words(folder, "docker")
    for words in ("docker compose", "docker-compose"):
        with suppress(OSError):
            if not subprocess.run([*words.split(), "version"], capture_output=True, check=False).returncode:
                return words, why
    return "", why or "compose is not installed"

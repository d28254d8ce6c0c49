"""Commands in places, through a session: what they see, write, print, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.places import SLEEP, places, running, when_printed
from support.sessions import calls, model_of, open_session, reply

from tui_agent.errors import SessionError
from tui_agent.store.commands import CommandResult

CHANGE = {"path": "a.py", "edits": [{"search": "print(1)", "replace": "print(2)"}]}
#: A shell stands for a container that mounts the copy, and for a host that has a copy of its own.
MOUNTED = {"name": "app", "run": "env -C {view} sh -c {command}"}
SENT = {"name": "app", "run": "sh -c {command}", "copy": "bundle"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "far"))
    root = tmp_path / "my work"
    root.mkdir()
    (root / "a.py").write_text("print(1)\n")
    (root / "b.txt").write_text("as on disk\n")
    return root


@pytest.mark.parametrize("place", [MOUNTED, SENT])
async def test_it_sees_what_is_pending_and_offers_what_it_wrote(
    root: Path, place: Mapping[str, object]
) -> None:
    async with open_session(
        root, [reply("Changes it.", fileChanges=[CHANGE])], overrides=places(place)
    ) as session:
        await session.chat.submit("change it")
        await session.chat.finished()
        await session.files.open("b.txt")
        session.files.edit("b.txt", "unsaved\n", (0, 0), (0, 0))
        await session.commands.run("@app cat a.py b.txt; echo x > 'new file.txt'; exit 3")
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert result.output == "print(2)\nunsaved\n"
        assert (result.status, result.how, result.place, result.command[:3]) == (3, "exit", "app", "cat")
        assert result.changed == ("new file.txt",)
        assert sorted(result.pending) == ["a.py", "b.txt"]
        await session.commands.take()
        assert "new file.txt" in {change.path for change in session.state.review.open}
        await session.commands.again()
        await session.commands.ended()
        assert session.state.commands.results[-1].place == "app"
        assert session.state.commands.results[-1].output == result.output
    assert (root / "a.py").read_text() == "print(1)\n"
    assert not (root / "new file.txt").exists()


@pytest.mark.parametrize("below", ["", "src/[a] *"])
async def test_a_place_that_shows_the_folder_itself_is_refused(root: Path, below: str) -> None:
    (root / below).mkdir(parents=True, exist_ok=True)
    place = {"name": "app", "run": f"env -C {shlex.quote(str(root / below))} sh -c {{command}}"}
    async with open_session(root, [], overrides=places(place)) as session:
        await session.commands.run("@app echo x > new")
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert (result.how, "Your folder is mounted there" in result.output) == ("place", True)
    assert not (root / below / "new").exists()


async def test_a_place_that_cannot_tell_the_folders_apart_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat", "setsid", "grep", "sleep"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    place = {"name": "app", "run": f"env PATH={shlex.quote(str(tmp_path / 'bin'))} sh -c {{command}}"}
    async with open_session(root, [], overrides=places(place)) as session:
        await session.commands.run("@app echo x")
        await session.commands.ended()
        (result,) = session.state.commands.results
        assert (result.how, "without the program ls" in result.output) == ("place", True)


async def test_the_copy_may_be_below_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_HOME", str(root / ".home"))
    (root / "src").mkdir()
    (root / "src" / "c.txt").write_text("c\n")
    async with open_session(root, [], overrides=places(MOUNTED)) as session:
        for words in ("pwd", "cd src && pwd"):
            await session.commands.run(f"@app {words}")
            await session.commands.ended()
        for result in session.state.commands.results:
            assert (result.how, result.output.startswith(str(root))) == ("exit", True)


async def test_a_place_with_busybox_returns_what_was_written_at_once(root: Path, tmp_path: Path) -> None:
    """As in containers of Alpine: its find compares whole seconds."""
    if (busybox := shutil.which("busybox")) is None:
        raise pytest.skip.Exception("busybox is not installed")
    (tmp_path / "box").mkdir()
    listed = await asyncio.to_thread(subprocess.check_output, (busybox, "--list"))
    for name in os.fsdecode(listed).split():
        (tmp_path / "box" / name).symlink_to(busybox)
    for name in {"comm", "setsid"}.difference(path.name for path in (tmp_path / "box").iterdir()):
        (tmp_path / "box" / name).symlink_to(str(shutil.which(name)))
    run = f"env -i HOME={tmp_path} PATH={tmp_path}/box sh -c {{command}}"
    async with open_session(
        root, [], overrides=places({"name": "app", "run": run, "copy": "bundle"})
    ) as session:
        for words in ("echo 1 > new; echo 2 > a.py", "cat a.py; rm b.txt; ls"):
            await session.commands.run(f"@app {words}")
            await session.commands.ended()
        first, second = session.state.commands.results
        assert first.changed == ("a.py", "new")
        assert (second.output, second.changed) == ("print(1)\na.py\n", ("b.txt",))


@pytest.mark.parametrize("place", [MOUNTED, SENT])
async def test_each_run_has_exactly_the_current_state(root: Path, place: Mapping[str, object]) -> None:
    """What a command wrote, changed, deleted or replaced by a link is not there for the next one."""
    (root / ".gitignore").write_text("kept/\n")
    (root / "src").mkdir()
    (root / "src" / "c.txt").write_text("c\n")
    async with open_session(root, [], overrides=places(place)) as session:

        async def run(command: str) -> CommandResult:
            await session.commands.run(f"@app {command}")
            await session.commands.ended()
            return session.state.commands.results[-1]

        spoiled = await run(
            "echo more >> a.py; rm b.txt; rm -r src; ln -s / src; mkdir kept new; touch kept/x new/y; chmod 600 a.py"
        )
        assert {"a.py", "b.txt", "new/y", "src"} <= set(spoiled.changed)
        assert "kept/x" not in spoiled.changed
        (root / "d.txt").write_text("d\n")
        await session.workspace.refresh()
        after = await run("find . -type f -o -type l | sort; cat a.py b.txt src/c.txt; stat -c %a a.py")
        assert after.output == (
            "./.gitignore\n./a.py\n./b.txt\n./d.txt\n./kept/x\n./src/c.txt\nprint(1)\nas on disk\nc\n644\n"
        )
        (root / "d.txt").unlink()
        (root / "a.py").write_text("print(9)\n")
        await session.workspace.refresh()
        assert (await run("cat a.py; ls")).output == "print(9)\na.py\nb.txt\nkept\nsrc\n"
        assert not {"new", "kept"} & set(os.listdir(root))


@pytest.mark.parametrize("place", [MOUNTED, SENT])
async def test_commands_at_the_same_time_have_a_copy_each(root: Path, place: Mapping[str, object]) -> None:
    async with open_session(root, [], overrides=places(place)) as session:
        for number in range(3):
            await session.commands.run(f"@app echo {number} > mine; sleep 0.3; cat mine")
        await session.commands.ended()
        assert sorted(result.output for result in session.state.commands.results) == ["0\n", "1\n", "2\n"]


@pytest.mark.parametrize("how", ["stopped", "time-out"])
@pytest.mark.parametrize("place", [MOUNTED, SENT])
async def test_no_process_is_left_after_a_stop(root: Path, place: Mapping[str, object], how: str) -> None:
    """Also none that ignores signals, or that left its process group."""
    begun = asyncio.Event()

    async with open_session(root, [], overrides=places(place)) as session:
        session.subscribe(when_printed("begun", begun))
        command = f"trap '' TERM INT; setsid {SLEEP}1 & {SLEEP}2 & echo begun; {SLEEP}3"
        if how == "stopped":
            await session.commands.run(f"@app {command}")
            await asyncio.wait_for(begun.wait(), 20)
            await session.stop_everything()
        else:
            await session.commands.run(command, timeout=1.0, place="app")
            await session.commands.ended()
        result = session.state.commands.results[-1]
        assert (result.how, result.output) == (how, "begun\n")
        assert not running(SLEEP)


async def test_programs_left_in_the_background_end_with_the_command(root: Path) -> None:
    async with open_session(root, [], overrides=places(MOUNTED)) as session:
        await session.commands.run(f"@app setsid {SLEEP}1 & {SLEEP}2 & echo done")
        await session.commands.ended()
        assert session.state.commands.results[-1].output == "done\n"
        assert not running(SLEEP)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (
            "no-such-engine {command}",
            "no-such-engine cannot be started (No such file or directory): install it",
        ),
        ("sh -c 'echo the engine is down >&2; exit 125' {command}", "the engine is down"),
        ("sh -c 'sh -c \"$3\" | head -c 40' x {command}", ""),
    ],
)
async def test_a_place_that_cannot_be_used_is_not_a_failed_command(root: Path, run: str, said: str) -> None:
    """Nor is a line that is lost before the command's end."""
    async with open_session(root, [], overrides=places({"name": "app", "run": run})) as session:
        await session.commands.run("@app echo begun; sleep 0.1; yes | head -1000")
        await session.commands.ended()
        result = session.state.commands.results[-1]
        assert result.how == "place"
        assert said in result.output
        assert not result.ok


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"name": "app", "run": "docker run image"}, "{command} has to be one word"),
        ({"name": "app", "run": "sh -c 'cd x; {command}'"}, "{command} has to be one word"),
        ({"name": "app", "run": "sh -c '{command}"}, "No closing quotation"),
        ({"name": "app", "run": "ssh host {command}"}, "ssh reaches no folder of this machine"),
        (
            {"name": "app", "run": "env -C {view} {command}", "copy": "bundle"},
            "{view} is a path of this machine",
        ),
        ({"name": "other", "run": "sh -c {command}"}, "There is no place app"),
    ],
)
async def test_a_place_that_makes_no_sense_is_refused(
    root: Path, place: Mapping[str, object], said: str
) -> None:
    async with open_session(root, [], overrides=places(place)) as session:
        with pytest.raises(SessionError, match=re.escape(said)):
            await session.commands.run("@app true")
        assert not session.state.commands.results


async def test_secrets_and_keys_stay_here(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-proj-" + "4fG7hJ2kL9mN3pQ8rS5tU1vW6xY0zA" * 2
    (root / ".env").write_text(f"API_KEY={key}\n")
    (root / "notes.txt").write_text(f"the key is {key}\n")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("HARMLESS", key)
    monkeypatch.setenv("PROJECT", "demo")
    for place in (MOUNTED, SENT):
        async with open_session(root, [], overrides=places(place)) as session:
            await session.commands.run("@app cat .env notes.txt; env; tr '\\0' '\\n' < /proc/$PPID/environ")
            await session.commands.ended()
            output = session.state.commands.results[-1].output
            assert "the key is" in output
            assert "PROJECT=demo" in output
            assert key not in output
            assert key[:20] not in output
    async with open_session(root, [], overrides=(*places(MOUNTED), 'trial.reveal=[".env"]')) as session:
        await session.commands.run("@app cat .env")
        await session.commands.ended()
        assert session.state.commands.results[-1].output == f"API_KEY={key}\n"


async def test_the_command_is_one_argument_and_no_shell_here_reads_it(root: Path, tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text(
        '#!/bin/sh\nfor one in "$@"; do echo "<$one>" >> "$0.arguments"; done\n'
        'view=${2#-v=}; shift 2; cd "${view%:/app}"\nexec "$@"\n'
    )
    engine.chmod(0o755)
    place = {"name": "app", "run": f"{engine} run -v={{view}}:/app {{command}}"}
    async with open_session(root, [], overrides=places(place)) as session:
        await session.commands.run("@app echo \"$(printf 'a  b')\" '$HOME' `echo c`; touch made")
        await session.commands.ended()
        assert session.state.commands.results[-1].output == "a  b $HOME c\n"
    found = (tmp_path / "engine.arguments").read_text()
    assert found.startswith("<run>\n<-v=")
    assert "/my work:/app>\n<sh>\n<-c>\n<" in found


async def test_a_check_runs_in_its_place(root: Path) -> None:
    check = {"name": "tests", "command": "cat a.py; grep -q 1 a.py", "place": "app"}
    overrides = (*places(MOUNTED), f"checks.commands={json.dumps([check])}")
    async with open_session(
        root, [reply("Changes it.", fileChanges=[CHANGE])], overrides=overrides
    ) as session:
        await session.chat.submit("change it")
        await session.chat.finished()
        await session.checks.settled()
        (result,) = session.state.checks.results
        assert result.state == "failed"
        ran = next(one for one in session.state.commands.results if one.id == result.run)
        assert (ran.place, ran.output) == ("app", "print(2)\n")
        assert session.state.holds(result)


async def test_a_check_whose_place_is_away_is_no_failure_of_the_change(root: Path) -> None:
    check = {"name": "tests", "command": "true", "place": "app"}
    place = {"name": "app", "run": "sh -c 'exit 255' {command}"}
    overrides = (*places(place), f"checks.commands={json.dumps([check])}")
    async with open_session(
        root, [reply("Changes it.", fileChanges=[CHANGE])], overrides=overrides
    ) as session:
        await session.chat.submit("change it")
        await session.chat.finished()
        await session.checks.settled()
        assert "The place app could not be used" in session.state.checks.refused
        assert not [one for one in session.state.checks.results if one.state == "failed"]


@pytest.mark.parametrize("allowed", [True, False])
async def test_the_model_uses_only_places_that_are_allowed_for_it(root: Path, allowed: bool) -> None:
    asked = calls(("run_command", {"command": "cat b.txt", "place": "app"}))
    overrides = places({**MOUNTED, "model": allowed})
    async with open_session(
        root, [asked, calls(text="Done.")], protocol="tools", overrides=overrides
    ) as session:
        await session.chat.submit("read it")
        await session.chat.finished()
        requests = model_of(session).requests
        system, *_, answer = (str(message) for message in requests[-1].messages)
        assert ("- app: env -C {view}" in system) == allowed
        if allowed:
            assert "as on disk" in answer
            assert "in the place app" in answer
        else:
            assert "not allowed for you" in answer
            assert not session.state.commands.results

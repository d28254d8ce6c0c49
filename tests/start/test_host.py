"""Starts through the host: the same program as without it, and none where anything about the start differs."""

from __future__ import annotations

import array
import json
import os
import pty
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from support.hosts import TUI_AGENT, host_sockets, hosting, spare_of, until
from support.program import run
from support.terminal_program import PATIENCE, SHELL, Program, running

from tui_agent.cli import tui_agent
from tui_agent.control import launcher, sockets
from tui_agent.start import ACCEPTED
from tui_agent.start.host import Program as HostedProgram
from tui_agent.start.host import ProgramHost, _fingerprint

INSTALLED = (str(Path(sys.executable).parent / "tui-agent"),)
QUIT = b"\x03\x03"
#: A colour of the screen without colours, and the first words of the plain screen.
ACCENTS = {"NO_COLOR": b"5;231", "TERM": b"Chat"}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """A person's machine, with a folder of sockets that belongs to this test. Sessions that outlive their terminals are
    ended by the numbers in the names of their sockets."""
    private = tmp_path / "sockets"
    private.mkdir()
    monkeypatch.setenv("TMPDIR", str(private))
    monkeypatch.delenv("CI")
    monkeypatch.setenv("TUI_AGENT_MODEL", "openai/test-model")
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "0")  # as `Program` has it: it is part of a host's name
    yield
    for path in private.glob("tui-agent-*/*"):
        number = path.suffix.removeprefix(".")
        if number.isdecimal():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def session(folder: Path) -> dict[str, Any]:
    """The only running session."""

    def found() -> dict[str, Any] | None:
        lines = run("ps", "--json", folder=folder).stdout.splitlines()
        return json.loads(lines[0]) if len(lines) == 1 else None

    return until(found, "one session")


def is_from_host(found: dict[str, Any], program: Program) -> bool:
    """Whether the launcher and the session are two processes: a cold start replaces the launcher."""
    return found["pid"] != program.process.pid


def test_a_session_of_the_host_has_what_its_launcher_has_and_outlives_the_host(
    workspace: Path, home: Path
) -> None:
    with ExitStack() as last:
        host = last.enter_context(hosting())
        before, mask = resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
        try:
            program = Program(".", folder=workspace, home=home, command=TUI_AGENT)
        finally:
            os.umask(mask)
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        last.enter_context(running(program, sign="Chat"))
        found = session(workspace)
        process = Path("/proc", str(found["pid"]))
        assert is_from_host(found, program)
        assert found["workspace"] == os.readlink(process / "cwd") == str(workspace)
        assert "Umask:\t0027" in (process / "status").read_text()
        limits = (process / "limits").read_text()
        assert next(line.split()[3] for line in limits.splitlines() if "open files" in line) == "200"
        assert (process / "cmdline").read_bytes().rstrip(b"\0") == b"tui-agent\0."
        assert (process / "stat").read_text().split()[5] == str(found["pid"]), "a session of its own"
        host.kill()
        host.wait()
        program.type(b"typed without the host")
        program.shows("typed without the host")
        program.resize(100, 30)
        program.until(lambda: "typed without the host" in program.text, "the text at another size")
        program.type(b"\x03" + QUIT)
        program.until(lambda: program.process.poll() is not None, "the end")
        assert program.process.returncode == 0
        assert termios.tcgetattr(program.master)[3] & termios.ICANON
        program.look()
        assert program.written.rindex(b"\x1b[?1049l") > program.written.rindex(b"\x1b[?1049h")
        with running(Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat") as cold:
            assert not is_from_host(session(workspace), cold)


EDITOR = """
import os, signal, sys
def interrupted(*_):
    with open(sys.argv[1], "w") as file:
        file.write(f"interrupted in {os.path.basename(os.getcwd())} with {os.environ['ONLY_THERE']}")
    sys.exit(0)
signal.signal(signal.SIGINT, interrupted)
assert os.tcgetpgrp(os.open("/dev/tty", os.O_RDWR)) == os.getpgrp()
print("IN THE EDITOR", flush=True)
signal.pause()
"""


def test_an_editor_is_in_the_foreground_of_its_terminal(workspace: Path, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "editor.py"
    script.write_text(EDITOR)
    variables = {"VISUAL": shlex.join([sys.executable, str(script)]), "ONLY_THERE": "its variables"}
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT, variables=variables)
        with running(program, sign="Chat"):
            assert is_from_host(session(workspace), program)
            program.type(b"a request\x18\x05")
            program.shows("IN THE EDITOR")
            program.type(b"\x03")
            program.shows("interrupted in workspace with its variables")
            program.type(b" and typed")
            program.shows("and typed")


def test_a_detach_before_the_control_socket_is_open(workspace: Path, home: Path) -> None:
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT)
        with running(program, sign="Chat"):
            program.type(b"\x0f&")
            program.until(lambda: program.process.poll() is not None, "the shell's turn")
            assert program.process.returncode == 0
        assert not session(workspace)["attached"]


def test_a_terminal_that_closes_below_an_editor_ends_it_and_leaves_the_session(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    script, number = tmp_path / "editor.py", tmp_path / "number"
    script.write_text(f"import os\nopen({str(number)!r}, 'w').write(str(os.getpid()))\n{EDITOR}")
    variables = {"VISUAL": shlex.join([sys.executable, str(script)])}
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT, variables=variables)
        with running(program, sign="Chat"):
            program.type(b"a request\x18\x05")
            program.shows("IN THE EDITOR")
            os.close(program.master)
            program.master = os.open(os.devnull, os.O_RDWR)
            until(lambda: not Path(f"/proc/{number.read_text()}").exists(), "the editor's end")
            until(lambda: not session(workspace)["attached"], "the session without a terminal")
        found = session(workspace)
        again = Program("attach", found["id"], folder=workspace, home=home, command=TUI_AGENT)
        with running(again, sign="a request"):
            again.type(b" and more")
            again.shows("a request and more")


def test_a_session_of_the_host_goes_to_its_shell_and_fg_returns(workspace: Path, home: Path) -> None:
    with (
        hosting(),
        running(
            Program(".", folder=workspace, home=home, starter=(SHELL,), command=TUI_AGENT), "Chat"
        ) as program,
    ):
        found = session(workspace)
        title = Path(f"/proc/{found['pid']}/cmdline").read_bytes().rstrip(b"\0")
        assert title == b"tui-agent\0.", "a session of the host"
        program.type(b"kept")
        program.shows("kept")
        program.type(b"\x1bOR\x1a")  # F3: in a text the key means undo
        program.until(lambda: os.tcgetpgrp(program.master) == program.process.pid, "the shell's terminal")
        assert termios.tcgetattr(program.master)[3] & termios.ICANON
        until(lambda: not session(workspace)["attached"], "the session without a terminal")
        program.blank()
        program.process.send_signal(signal.SIGUSR1)
        program.shows("kept")
        assert (again := session(workspace))["attached"] and again["pid"] == found["pid"]
        program.type(QUIT)
        program.until(lambda: program.process.poll() is not None, "the end")


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONHASHSEED": "1"},
        {"CI": "1"},
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
    ],
    ids=lambda it: next(iter(it)),
)
def test_other_variables_are_those_of_the_launcher(
    workspace: Path, home: Path, variables: dict[str, str]
) -> None:
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT, variables=variables)
        with running(program, sign="Chat"):
            of_terminal = not variables.keys().isdisjoint(("TERM", "NO_COLOR"))
            assert is_from_host(session(workspace), program) == of_terminal
            program.type(b"typed")
            program.shows("typed")
            program.until(
                lambda: ACCENTS.get(next(iter(variables)), b"5;110") in program.written, "its colours"
            )
            assert (b"5;110" in program.written) != of_terminal


def test_a_stopped_host_delays_a_start_by_50_ms(workspace: Path, home: Path) -> None:
    with hosting() as host:
        host.send_signal(signal.SIGSTOP)
        with running(Program(".", folder=workspace, home=home, command=INSTALLED), sign="Chat") as program:
            assert not is_from_host(session(workspace), program)
            host.send_signal(signal.SIGCONT)
        with running(Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat") as program:
            assert is_from_host(session(workspace), program)


def test_a_stopped_spare_gets_no_terminal(workspace: Path, home: Path) -> None:
    with hosting() as host:
        spare = spare_of(host.pid)
        os.kill(spare, signal.SIGSTOP)
        with running(Program(".", folder=workspace, home=home, command=INSTALLED), sign="Chat") as program:
            assert not is_from_host(session(workspace), program)
        os.kill(spare, signal.SIGKILL)


def test_a_host_that_ends_while_it_hands_a_terminal_over_costs_nothing(workspace: Path, home: Path) -> None:
    with hosting() as host:
        spare = spare_of(host.pid)
        os.kill(spare, signal.SIGSTOP)
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT)
        until(lambda: spare_of(host.pid) != spare, "the next spare, because this one has a connection")
        host.kill()
        host.wait()
        os.kill(spare, signal.SIGCONT)
        with running(program, sign="Chat"):
            program.type(b"typed")
            program.shows("typed")
            session(workspace)  # Only now it has a socket, by which it is ended.


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--no-such-option",), "has no option"),
        (("no-such-folder/x",), "no-such-folder"),
        (("--version",), "tui-agent "),
        (("--resume", "20200101-000000-0000"), "20200101-000000-0000"),
    ],
)
def test_words_that_open_no_session_are_answered_as_without_a_host(
    workspace: Path, home: Path, words: tuple[str, ...], said: str
) -> None:
    with (
        hosting(),
        running(Program(*words, folder=workspace, home=home, command=TUI_AGENT), sign=said) as program,
    ):
        program.until(lambda: program.process.poll() is not None, "the end")
        program.look()
        assert program.process.returncode == {"--version": 0, "--resume": 1}.get(words[0], 2)
        assert "ended unexpectedly" not in program.text


def test_a_setting_ends_the_host(workspace: Path, home: Path) -> None:
    with hosting() as host:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "settings.toml").write_text("[start]\nkeep_ready = false\n")
        with running(Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat") as program:
            assert not is_from_host(session(workspace), program)
            assert until(lambda: host.poll() is not None, "the host's end")
        assert host_sockets() == []


def test_a_second_host_ends_before_it_imports_the_screen(workspace: Path, home: Path) -> None:
    """Each cold start begins one: many starts at once would otherwise compute half a second each for nothing."""
    with hosting() as host:
        words = [sys.executable, "-X", "importtime", "-P", "-m", "tui_agent.start", "600"]
        done = subprocess.run(words, check=False, timeout=PATIENCE, stderr=subprocess.PIPE)
        assert done.returncode == 1 and b"tui_agent.control" in done.stderr and b"textual" not in done.stderr
        assert host.poll() is None and host_sockets() != []


def test_a_launcher_that_no_longer_waits_leaves_the_program_to_the_next_one(tmp_path: Path) -> None:
    """It was never used, and never ended, while its host ran."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, sockets.listening(tmp_path, "host") as server:
        host = ProgramHost(server, tmp_path / "host", -1, _fingerprint(), 600)
        program = host._programs[ours.fileno()] = HostedProgram(ours)
        for waits in (False, True):
            launcher = socket.socket(socket.AF_UNIX)
            with sockets._address(tmp_path, "host") as address:
                launcher.connect(address)
            if not waits:
                launcher.close()
            host._accept()
            assert program.is_given is waits
        launcher.close()


def test_a_terminal_of_another_size_changes_the_frame_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, sockets.listening(tmp_path, "host") as server:
        host = ProgramHost(server, tmp_path / "host", -1, _fingerprint(), 600)
        program = host._programs[ours.fileno()] = HostedProgram(ours)
        program.is_given = True
        theirs.send(ACCEPTED + b"123x45")
        host._hear(program)
        assert host.run() is None
        assert shutil.get_terminal_size() == (123, 45)


def test_changed_keys_are_those_of_the_next_starts(workspace: Path, home: Path) -> None:
    with hosting():
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "keys.toml").write_text('[app]\nhelp = "f7"\n')
        for _ in range(2):
            with running(
                Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat"
            ) as program:
                program.shows("F7 keys")
                found = session(workspace)
                assert is_from_host(found, program)
                os.kill(found["pid"], signal.SIGKILL)
                until(lambda pid=found["pid"]: not Path("/proc", str(pid)).exists(), "the session's end")


def test_a_host_ends_after_a_time_without_a_session(workspace: Path, home: Path) -> None:
    with hosting(idle=3) as host:
        spare = spare_of(host.pid)
        assert host.wait(PATIENCE) == 0
        assert list(Path(os.environ["TMPDIR"]).glob("*/host-*")) == []
        until(lambda: not Path("/proc", str(spare)).exists(), "the spare's end")


def request(**changed: Any) -> bytes:
    """What a launcher sends, with other values."""
    limit = [resource.RLIMIT_NOFILE, *resource.getrlimit(resource.RLIMIT_NOFILE)]
    values = {
        "words": ["."],
        "variables": dict(os.environ),
        "umask": 0o022,
        "limits": [limit],
        "size": [80, 24],
    }
    return json.dumps({"type": "start", **values, **changed}).encode() + b"\n"


def files(count: int) -> list[int]:
    return [os.open(os.devnull, os.O_RDWR) for _ in range(count)]


def terminals(count: int) -> list[int]:
    return [pty.openpty()[1] for _ in range(count)]


def folder() -> list[int]:
    return [os.open("/", os.O_PATH)]


def one_terminal() -> list[int]:
    return terminals(1) * 3


BAD: dict[str, tuple[bytes, Callable[[], list[int]]]] = {
    "files": (request(), lambda: files(3) + folder()),
    "three terminals": (request(), lambda: terminals(3) + folder()),
    "no folder": (request(), lambda: one_terminal() + files(1)),
    "too few": (request(), one_terminal),
    "too many": (request(), lambda: files(253)),
    "no JSON": (b"no JSON\n", lambda: one_terminal() + folder()),
    "deep": (b"[" * 100_000 + b"\n", lambda: one_terminal() + folder()),
    "no object": (b"[]\n", lambda: one_terminal() + folder()),
    "too long": (b"x" * 5_000_000, lambda: one_terminal() + folder()),
    "never complete": (b"{", lambda: one_terminal() + folder()),
    "words": (request(words=7), lambda: one_terminal() + folder()),
    "umask": (request(umask="x"), lambda: one_terminal() + folder()),
    "limits": (request(limits=[[7, -9]]), lambda: one_terminal() + folder()),
    "variables": (request(variables={"A\0": "\ud800"}), lambda: one_terminal() + folder()),
    "size": (request(size=["x"]), lambda: one_terminal() + folder()),
}


def test_bad_requests_are_refused_and_the_next_start_succeeds(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_HOME", str(home))
    with hosting() as host:
        (place,) = host_sockets()
        monkeypatch.chdir(place.parent)  # the whole path is too long for an address
        for name, (data, descriptors) in BAD.items():
            given = descriptors()
            answer = answer_to(place.name, data, given)
            assert b"accepted" not in answer, name
            assert host.poll() is None, name
            for descriptor in set(given):
                os.close(descriptor)
        with running(Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat") as program:
            assert is_from_host(session(workspace), program)


def answer_to(place: str, data: bytes, given: list[int]) -> bytes:
    """The answer of the host's program to a request with descriptors."""
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(PATIENCE)
        client.connect(place)
        while b'"ready"' not in answer:
            answer += (piece := client.recv(100))
            assert piece
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))]
        try:
            client.sendall(data[client.sendmsg([data], rights) :])
            while piece := client.recv(100):
                answer += piece
        except (BrokenPipeError, ConnectionResetError):
            pass  # closed before it was read
    return answer


def test_a_launcher_that_is_killed_early_leaves_a_host_for_the_next_start(
    workspace: Path, home: Path
) -> None:
    with hosting() as host:
        for milliseconds in range(0, 200, 16):
            program = Program(".", folder=workspace, home=home, command=TUI_AGENT)
            time.sleep(milliseconds / 1000)  # the moment itself is what is tried
            program.process.kill()
            program.process.wait()
            os.close(program.master)
        other = workspace / "other"
        other.mkdir()
        with running(Program(".", folder=other, home=home, command=TUI_AGENT), sign="Chat") as program:
            program.type(b"typed")
            program.shows("typed")
            assert host.poll() is None

            def of_host() -> bool:
                lines = map(json.loads, run("ps", "--json", folder=other).stdout.splitlines())
                found = [line for line in lines if line["workspace"] == str(other)]
                return len(found) == 1 and is_from_host(found[0], program)

            until(of_host, "a session of the host")


def name_for(*starter: str, **variables: str) -> str:
    """The name of the host of processes with these variables that a program starts."""
    folder = str(Path(launcher.__file__).parents[2])
    code = (
        "import sys; sys.path.append(sys.argv[1]); from tui_agent.control.launcher import host_name; "
        "print(host_name(sys.executable, sys.argv[1] + '/tui_agent'))"
    )
    words = [*starter, sys.executable, "-IS", "-c", code, folder]
    return subprocess.check_output(words, env=os.environ | variables, text=True)


def test_a_name_of_a_host_has_what_a_process_inherits() -> None:
    own = name_for()
    assert own.startswith("host-") and own == name_for(TERM="dumb", NO_COLOR="1", ODD="1")
    found = [
        name_for(**{name: value})
        for name, value in (("PYTHONHASHSEED", "1"), ("LD_BIND_NOW", "1"), ("LC_ALL", "C.UTF-8"))
    ]
    assert len({own, *found}) == 4
    assert name_for("nice", "-n", "1") != own


ONLY_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may make namespaces without a user namespace"
)


@ONLY_ROOT
def test_a_name_of_a_host_has_the_namespaces() -> None:
    kinds = ("--mount", "--net", "--ipc", "--uts", "--cgroup")
    assert len({name_for(), *(name_for("unshare", kind) for kind in kinds)}) == 6


@ONLY_ROOT
def test_another_namespace_finds_no_host(workspace: Path, home: Path) -> None:
    with hosting():
        program = Program(
            ".",
            folder=workspace,
            home=home,
            command=("unshare", "--mount", *TUI_AGENT),
            starter=("import os, sys; os.execvp(sys.argv[1], sys.argv[1:])",),
        )
        with running(program, sign="Chat"):
            assert not is_from_host(session(workspace), program)


def test_variables_that_are_not_text(workspace: Path, home: Path) -> None:
    variables = {"ODD": os.fsdecode(b"\xff\xfe=\n"), os.fsdecode(b"\xe9"): ""}
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT, variables=variables)
        with running(program, sign="Chat"):
            assert is_from_host(session(workspace), program)
            program.type(b"typed")
            program.shows("typed")


@pytest.mark.parametrize(("value", "is_hosted"), [("x", True), (os.fsdecode(b"\xff"), False)])
def test_many_variables(workspace: Path, home: Path, value: str, is_hosted: bool) -> None:
    """1.3 MB of them, which are more than the host accepts if each byte has to be escaped."""
    variables = {f"LARGE_{number}": value * 110_000 for number in range(12)}
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT, variables=variables)
        with running(program, sign="Chat"):
            assert is_from_host(session(workspace), program) == is_hosted
            program.type(b"typed")
            program.shows("typed")


def test_several_starts_at_once_all_succeed(workspace: Path, home: Path) -> None:
    with hosting(), ExitStack() as last:
        programs = [Program(".", folder=workspace, home=home, command=TUI_AGENT) for _ in range(5)]
        for number, program in enumerate(programs):
            last.enter_context(running(program, sign="Chat"))
            program.type(b"start %d" % number)
        for number, program in enumerate(programs):
            program.shows(f"start {number}")
        ps = "ps", "--json"
        until(lambda: len(run(*ps, folder=workspace).stdout.splitlines()) == 5, "sockets, by which they end")


@pytest.mark.parametrize("size", [(1, 1), (500, 200), (80, 24)])
def test_a_terminal_of_any_size(workspace: Path, home: Path, size: tuple[int, int]) -> None:
    with hosting():
        program = Program(".", folder=workspace, home=home, command=TUI_AGENT)
        program.resize(*size)
        try:
            found = session(workspace)
            assert found["pid"] != program.process.pid
            program.type(b"typed")
            program.until(lambda: session(workspace)["attached"], "attached")
            program.resize(130, 40)
            program.shows("typed")
        finally:
            program.process.kill()
            program.process.wait()


@pytest.mark.parametrize("kind", ["gone", "not text", "long"])
def test_odd_folders(home: Path, tmp_path: Path, kind: str) -> None:
    names = {"gone": b"gone", "not text": b"caf\xe9", "long": b"/".join([b"x" * 200] * 4)}
    odd = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), names[kind])))
    odd.mkdir(parents=True)
    starter = ("import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])",)
    with hosting():
        words = (str(tmp_path),) if kind == "gone" else (".",)
        program = Program(
            *words, folder=odd, home=home, command=TUI_AGENT, starter=starter if kind == "gone" else ()
        )
        with running(program, sign="Chat"):
            program.type(b"typed")
            program.shows("typed")
            session(tmp_path)  # Only now it has a socket, by which it is ended.


def test_a_start_leaves_a_host_for_the_next_one(workspace: Path, home: Path) -> None:
    with running(Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat") as first:
        assert not is_from_host(session(workspace), first)
        until(host_sockets, "a host")
    with running(Program(".", folder=workspace, home=home, command=TUI_AGENT), sign="Chat") as second:
        found = session(workspace)
        assert is_from_host(found, second)
        host = int(Path("/proc", str(found["pid"]), "stat").read_text().split()[3])
        os.kill(host, signal.SIGTERM)
        until(lambda: not host_sockets(), "the host's end")
        second.type(b"typed")
        second.shows("typed")
        os.kill(found["pid"], signal.SIGKILL)
        second.until(lambda: second.process.poll() is not None, "the launcher's end")
        second.shows("ended unexpectedly")
        assert termios.tcgetattr(second.master)[3] & termios.ICANON
        assert second.written.rindex(b"\x1b[?1049l") > second.written.rindex(b"\x1b[?1049h")


def test_the_words_that_the_launcher_knows_are_the_commands() -> None:
    assert set(launcher.COLD_WORDS) == {
        name for name, command in tui_agent.commands.items() if not command.hidden
    }


#: Prints modules that a session can import after its start and that the host lacks; then heavy libraries of the host.
LACKING = """
import ast, pkgutil, sys
import tui_agent
from tui_agent.start import host
modules = {found.name for found in pkgutil.walk_packages(tui_agent.__path__, "tui_agent.")}
host.import_everything()
mine = {name for name in sys.modules if name.startswith("tui_agent.")}
wanted = set()
for name in mine - {"tui_agent.cli"}:
    with open(sys.modules[name].__file__) as file:
        for node in ast.walk(ast.parse(file.read())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tui_agent"):
                wanted |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
print(*sorted((wanted & modules) - mine))
heavy = ("acp", "distributed", "h2", "httpcore", "httpx", "litellm", "mcp", "pydantic", "tiktoken", "websockets")
print(*(name for name in heavy if name in sys.modules))
"""


def test_the_host_imports_all_that_a_session_can_import_and_no_libraries_of_other_processes() -> None:
    words = [sys.executable, "-P", "-c", LACKING]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    # Readers of replies import it in the process of the model.
    assert done.stdout.splitlines() == ["tui_agent.model.event_stream", ""]

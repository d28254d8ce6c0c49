"""The debug log: every fault leaves its traceback there, and no secret and nothing of a file ever does."""

from __future__ import annotations

import ast
import logging
import os
import re
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

import tui_agent
from tui_agent import debug_log
from tui_agent.errors import ChildFailed, EditFailed
from tui_agent.processes.child import ChildProcess

PACKAGE = Path(tui_agent.__file__).parent
KEY = "sk-proj-abcDEF123456789ghiJKL"
CONTENT = "the recipe for the sauce, page 12"
LOGGING = {"debug", "info", "warning", "error", "exception", "fault", "_unknown", "logged", "break_down"}


@pytest.fixture
def log(tmp_path: Path):
    """A log of this test's own; returns what is in it so far."""
    debug_log.start(tmp_path / "state", verbose=True)

    def text() -> str:
        debug_log.flush()
        path = tmp_path / "state" / debug_log.NAME
        return path.read_text() if path.exists() else ""

    yield text
    debug_log.stop()


def test_a_pipe_in_its_place_does_not_hold_the_end_of_the_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / debug_log.NAME)
    debug_log.start(tmp_path)
    logger().warning("somebody should read this")
    ending = threading.Thread(target=debug_log.stop, daemon=True)
    ending.start()
    ending.join(20)
    assert not ending.is_alive()


@pytest.mark.parametrize("then", ["the program ends", "its file is removed"])
def test_a_full_disk_is_no_error(tmp_path: Path, then: str) -> None:
    debug_log.start(tmp_path)
    path = tmp_path / debug_log.NAME
    logger().warning("%s", "first " * 999)
    debug_log.flush()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        logger().warning("second")
        debug_log.flush()
        if then == "its file is removed":
            path.unlink()
            logger().warning("third")
            debug_log.flush()
            assert "third" in path.read_text()
        debug_log.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def logger() -> logging.Logger:
    return logging.getLogger("tui_agent.some.module")


def test_a_fault_is_written_with_its_causes_and_says_where(log, tmp_path):
    try:
        try:
            _ = {}.missing  # ty: ignore
        except AttributeError as cause:
            raise RuntimeError("the loop is closed") from cause
    except RuntimeError as error:
        found = debug_log.fault("A fault ended it", error)
    assert found.what == "A fault ended it: RuntimeError: the loop is closed"
    assert str(found).endswith(f" is in {tmp_path / 'state' / 'debug.log'}")
    text = log()
    assert "'dict' object has no attribute 'missing'" in text and "RuntimeError: the loop is closed" in text
    assert text.count("test_a_fault_is_written") == 2
    assert oct(stat.S_IMODE(os.stat(debug_log.place()).st_mode)) == "0o600"


def test_without_a_folder_that_can_be_written_no_path_is_promised(tmp_path):
    (tmp_path / "file").write_text("")
    debug_log.start(tmp_path / "file" / "state")
    try:
        assert debug_log.fault("It ended", KeyError("x")).remedy == "run it with --debug and report it"
    finally:
        debug_log.stop()


ERRORS = [
    ValueError(CONTENT),
    KeyError(CONTENT),
    AssertionError(CONTENT),
    EditFailed(CONTENT, CONTENT),
    UnicodeDecodeError("utf-8", CONTENT.encode(), 0, 1, CONTENT),
    type("OwnRuntimeError", (RuntimeError,), {})(CONTENT),
    sqlite3.OperationalError(f'near "{CONTENT}": syntax error'),
    ExceptionGroup(CONTENT, [ValueError(CONTENT)]),
    RuntimeError(f"the key {KEY} was refused"),
    FileNotFoundError(2, "No such file", f"/x/{KEY}"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_content_and_no_key_of_an_exception(log, error):
    error.add_note(CONTENT)
    try:
        secret_of_the_person = CONTENT
        raise error
    except Exception:
        logger().exception("it failed")
    text = log()
    assert f"{type(error).__name__}" in text and "test_no_content_and_no_key" in text
    assert secret_of_the_person not in text and KEY not in text and "sauce" not in text


def test_no_content_and_no_key_of_what_others_log_or_write(log, monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", "plain-words-of-a-token")
    logging.getLogger("asyncio").error("never retrieved: <Task exception=ValueError('%s')>", CONTENT)
    child = logging.getLogger("tui_agent.child.model")
    child.info("UserWarning: [input_value=Message(content='%s')]", CONTENT)
    child.info("  content=Message(text=%r)", CONTENT + "\\'")
    child.info("ValueError: %s", CONTENT)
    child.info('  File "/usr/lib/python3/json/decoder.py", line 355, in raw_decode')
    logger().info("it said plain-words-of-a-token and %s", KEY)
    logger().info("one line\nthat looks like two")
    text = log()
    assert "sauce" not in text and KEY not in text and "plain-words" not in text
    assert '"/usr/lib/python3/json/decoder.py", line 355' in text
    assert len(text.splitlines()) == 7


def test_it_is_written_beside_the_loop_and_never_waits(log, monkeypatch):
    threads = []
    original = RotatingFileHandler.emit
    monkeypatch.setattr(
        RotatingFileHandler,
        "emit",
        lambda self, record: (threads.append(threading.current_thread()), original(self, record)),
    )
    logger().info("hello")
    assert "hello" in log()
    assert threads and threading.main_thread() not in threads


def test_it_rotates_and_is_shared_with_other_processes(log, tmp_path, monkeypatch):
    monkeypatch.setattr(debug_log, "FILE_BYTES", 2_000)
    script = (
        "import sys, logging; from pathlib import Path; from tui_agent import debug_log; debug_log.FILE_BYTES = 2_000\n"
        "debug_log.start(Path(sys.argv[1]))\n"
        "for n in range(40): logging.getLogger('tui_agent.x').info('theirs %d', n)\n"
    )
    logger().info("ours, first")
    log()
    subprocess.run([sys.executable, "-c", script, tmp_path / "state"], check=True, timeout=60)
    logger().info("ours, last")
    assert "ours, last" in log()  # in the newest file, although another process began it
    files = sorted(path.name for path in (tmp_path / "state").iterdir())
    assert (
        files == ["debug.log", "debug.log.1", "debug.log.2", "debug.log.3"][: len(files)] and len(files) > 1
    )
    assert all(path.stat().st_size <= 2_000 for path in (tmp_path / "state").iterdir())


def test_until_there_is_a_record_nothing_is_imported_and_no_file_made(tmp_path):
    script = (
        "import sys, logging, pathlib; from tui_agent import debug_log\n"
        "debug_log.start(pathlib.Path(sys.argv[1])); debug_log.place()\n"
        "print([name for name in ('logging.handlers', 'queue', 'tui_agent.files') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "state"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"
    assert not (tmp_path / "state").exists()


def test_a_thread_that_ends_with_a_fault_leaves_its_traceback(log):
    thread = threading.Thread(target=lambda: [].pop(), name="some thread")
    thread.start()
    thread.join()
    assert "pop from empty list" in log()


async def test_what_a_child_writes_is_in_the_log(log):
    here = Path(__file__).parent
    child = ChildProcess(
        "support.child_program", name="helper", env={"PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    )
    with pytest.raises(ChildFailed, match="nothing to divide by") as failed:
        await child.ask("breaks")
    assert str(failed.value).endswith(f"what it wrote is in {debug_log.place()}")
    await child.ask("prints")
    await child.close()
    with pytest.raises(ChildFailed, match="cannot start"):
        await ChildProcess(
            "support.child_program", name="helper", env={**child.environment, "BROKEN": "1"}
        ).ask("x")
    text = log()
    assert "child.helper: started as process" in text
    assert "ZeroDivisionError: nothing to divide by" in text and "in breaks" in text
    assert "child.helper: to standard output\n" in text
    assert "child.helper: The helper process ended with status 1" in text


def handlers_in(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            yield node


def is_broad(kind: ast.expr | None) -> bool:
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        name is None or (isinstance(name, ast.Name) and name.id in ("Exception", "BaseException"))
        for name in names
    )


def test_every_broad_except_logs_or_raises():
    silent, seen = [], 0
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if not re.search(r"Exception\b|except\s*:", text):
            continue
        tree = ast.parse(text)
        for handler in handlers_in(tree):
            if not is_broad(handler.type):
                continue
            seen += 1
            calls = {
                getattr(call.func, "attr", getattr(call.func, "id", ""))
                for call in ast.walk(handler)
                if isinstance(call, ast.Call)
            }
            ends = "_exit" in calls and calls & {"write", "print_exc"}  # said on the process's standard error
            if not isinstance(handler.body[-1], ast.Raise) and not calls & LOGGING and not ends:
                silent.append(f"{path.relative_to(PACKAGE)}:{handler.lineno}")
        silent += [
            f"{path.relative_to(PACKAGE)}:{call.lineno}: suppress"
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            and getattr(call.func, "id", "") == "suppress"
            and any(map(is_broad, call.args))
        ]
    assert seen > 10
    assert silent == []


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't start new thread")], ids=lambda it: type(it).__name__
)
def test_a_refusal_of_memory_or_a_thread_names_the_limits(error: Exception) -> None:
    led_to = AttributeError("incomplete")
    led_to.__context__ = error
    for each in (error, led_to):
        assert "ulimit" in debug_log.fault("unexpected error", each).remedy
    assert "ulimit" not in debug_log.fault("unexpected error", AttributeError("another")).remedy

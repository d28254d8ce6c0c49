"""What a failed command's output shows of a cause that is not the change's."""

from __future__ import annotations

import pytest

from tui_agent.checks.comparison import cause_of, missing_programs

EXCUSED = [
    ("network", 1, "npm error code EAI_AGAIN\nnpm error request to https://r.example/x failed\n"),
    ("network", 1, "Error: getaddrinfo ENOTFOUND db.example.org\n    at GetAddrInfoReqWrap.onlookup\n"),
    ("network", 6, "curl: (6) Could not resolve host: example.org\n"),
    (
        "network",
        1,
        "E   socket.gaierror: [Errno -3] Temporary failure in name resolution\n1 failed in 0.1s\n",
    ),
    ("network", 1, "npm error code ENOTCACHED\nnpm error request failed: cache mode is 'only-if-cached'\n"),
    ("network", 1, "ERROR: No matching distribution found for left-pad\n"),
    ("network", 1, "go: example.org/x: module lookup disabled by GOPROXY=off\n"),
    ("network", 1, "> Could not resolve org.junit:junit:5.1.\n"),
    ("docker", 1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n"),
    ("service", 2, 'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused\n'),
    ("service", 1, "Error: connect ECONNREFUSED 127.0.0.1:6379\n"),
    ("service", 2, 'psql: error: connection to server on socket "/run/.s.PGSQL.5432" failed: No such file\n'),
    (
        "network",
        255,
        "Pseudo-terminal will not be allocated because stdin is not a terminal.\n"
        "ssh: connect to host example.org port 22: Network is unreachable\n",
    ),
    ("program", 127, "/bin/sh: 1: jest: not found\n"),
    ("program", 2, "make: pytest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n"),
    ("program", 1, "/usr/bin/python3: No module named pytest\n"),
    ("program", 101, "error: no such command: `clippy`\n"),
    ("memory", 137, ""),
    ("memory", 1, "E   MemoryError\n1 failed in 0.1s\n"),
    ("memory", 134, "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n"),
    ("space", 1, "OSError: [Errno 28] No space left on device\n"),
    ("emptied", 1, "cannot load certificate tests/certs/server.key: no start line\n"),
    (
        "emptied",
        1,
        ">       assert 'BEGIN' in open('tests/certs/server.key').read()\n"
        "E       AssertionError: assert 'BEGIN' in ''\n1 failed in 0.1s\n",
    ),
    ("keyboard", 1, "error: There was a problem with the editor 'false'.\n"),
]


@pytest.mark.parametrize(("kind", "status", "output"), EXCUSED)
def test_a_cause_is_recognised_and_excuses(kind: str, status: int, output: str) -> None:
    cause = cause_of("exit", status, output, emptied=["tests/certs/server.key"])
    assert cause is not None
    assert (cause.kind, cause.excused) == (kind, True)


@pytest.mark.parametrize("how", ["time-out", "memory", "processes", "output", "keyboard"])
def test_a_limit_excuses(how: str) -> None:
    cause = cause_of(how, -9, "")
    assert cause is not None
    assert cause.excused


NOT_EXCUSED = [
    "E   AssertionError: assert 1 == 2\n1 failed in 0.1s\n",
    "E   AssertionError: assert 1 == 2\nE   socket.gaierror: [Errno -2] Name or service not known\n2 failed in 0.1s\n",
    "E   socket.gaierror: [Errno -2] Name or service not known\n5 failed in 0.1s\n",
    "E   ModuleNotFoundError: No module named 'shop'\n1 error in 0.1s\n",
    '✘ [ERROR] Could not resolve "./missing"\n',
    "Error: connect ECONNREFUSED 127.0.0.1:3000\n",
    "EOFError: EOF when reading a line\n",
    "server.key\nE   AssertionError: assert 1 == 2\nE   AssertionError: assert 3 == 4\n2 failed in 0.1s\n",
    "E   TypeError: no key in tests/certs/server.key\n1 failed in 0.1s\n",
    "src/a.c:3:1: error: unknown type name 'in'\n",
    "PermissionError: Read-only file system: '/etc/x'\n",
]


@pytest.mark.parametrize("output", NOT_EXCUSED)
def test_what_may_be_the_fault_of_the_change_is_not_excused(output: str) -> None:
    cause = cause_of("exit", 1, output, emptied=["tests/certs/server.key"])
    assert cause is None or not cause.excused


def test_a_program_that_is_missing_is_named() -> None:
    output = (
        "sh: 1: jest: not found\nbash: line 3: rg: command not found\nmake: tox: No such file or directory\n"
    )
    assert missing_programs(output) == ["jest", "rg", "tox"]
    assert missing_programs("spawn tsc ENOENT\nenv: ‘node’: No such file or directory\n") == ["tsc", "node"]


@pytest.mark.parametrize(
    "end", ["package name: (x) ", "Continue? [y/N] ", "Username: ", "1) a\n2) b\n#? ", "Sure (yes/no)? "]
)
def test_an_output_that_ends_with_a_question_waited_for_a_keyboard(end: str) -> None:
    cause = cause_of("exit", 1, f"Some lines\n{end}")
    assert cause is not None
    assert cause.kind == "keyboard"
    assert cause_of("exit", 1, f"Some lines\n{end}\nno answer\n") is None
    assert cause_of("exit", 0, end) is None

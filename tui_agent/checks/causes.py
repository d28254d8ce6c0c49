"""Causes of a failed command apart from the change: no network, a missing program, a limit, a hidden file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from tui_agent.checks.output import outcome_of
from tui_agent.files.lazy_regex import LazyRegex, late

Kind = Literal[
    "network", "docker", "service", "program", "memory", "space", "read-only", "keyboard", "emptied", "limit"
]


class Cause(NamedTuple):
    """words: a clause for the user. excused: the output shows no other problem, so no change of the files
    could fix it."""

    kind: Kind
    words: str
    excused: bool


_WORDS: Final[dict[Kind, str]] = {
    "network": "commands have no network access",
    "docker": "commands have no access to Docker",
    "service": "commands have no access to services of this machine",
    "program": "a program is missing",
    "memory": "not enough memory",
    "space": "no space left on the device",
    "read-only": "it writes to a read-only place",
    "keyboard": "it waited for keyboard input: pass its input as arguments",
    "emptied": "it reads a file that is empty for commands",
}
_LIMITS: Final[dict[str, str]] = {
    "time-out": "it exceeded its time limit",
    "memory": "it exceeded its memory limit (trial.memory)",
    "processes": "it exceeded its process limit (trial.processes)",
    "output": "it exceeded its output limit",
    "keyboard": _WORDS["keyboard"],
}
#: Databases and queues in "connection refused" messages.
_PORTS = r"(?:5432|3306|6379|27017|5672|9200|9092|11211|1433|1521|2181|4222|9042|26257|8123)"
_NETWORK = "|".join(
    (
        r"EAI_AGAIN|\bENOTFOUND\b|ENETUNREACH|EHOSTUNREACH|[Nn]etwork is unreachable|[Nn]o route to host",
        r"[Tt]emporary failure (?:in name resolution|resolving)|[Nn]ame or service not known|nodename nor servname",
        r"getaddrinfo failed|failed to lookup address|[Nn]o such host|UnknownHostException|[Cc]ouldn't resolve host",
        # Not a bundler's: Could not resolve "./module"
        r"[Cc]ould not resolve (?:host|proxy|dependenc|all |artifact|plugin|'[\w-]+\.[\w-]+|[\w.-]+:[\w.-]+:)",
        r"ENOTCACHED|only-if-cached|disabled by GOPROXY=off|run without offline|--offline|[Oo]ffline mode",
        r"No matching distribution found|ERR_PNPM_NO_OFFLINE|OfflineModeIsEnabled|LocalEntryNotFoundError",
        r"[Nn]etwork (?:access|connectivity) (?:is|was|have been|has been) disabled|COMPOSER_DISABLE_NETWORK",
        r"blocked because of your configuration settings|^ssh: connect to host",
    )
)
#: Patterns of output lines; the first match decides.
_SIGNS: Final[tuple[tuple[Kind, LazyRegex], ...]] = tuple(
    (kind, late(pattern))
    for kind, pattern in (
        (
            "docker",
            r"Cannot connect to the Docker daemon|docker\.sock|[Ii]s the docker daemon running"
            r"|Could not find a valid Docker environment|DockerException",
        ),
        (
            "service",
            rf"(?:ECONNREFUSED|[Cc]onnection refused|[Cc]ould not connect|[Cc]an't connect).{{0,200}}\b{_PORTS}\b"
            rf"|\b{_PORTS}\b.{{0,200}}(?:ECONNREFUSED|[Cc]onnection refused|[Cc]onnection failed)"
            r"|ServerSelectionTimeoutError|Can't connect to (?:local )?MySQL|/\.s\.PGSQL\.\d{1,5}\b",
        ),
        ("network", _NETWORK),
        (
            "program",
            r"^(?:\S{1,200}: ){1,3}(?:\d{1,6}: |line \d{1,6}: ){0,2}(?:command )?not found\b"
            r"|: command not found|: (?:\d{1,6}: )?[\w.+-]{1,80}: not found$|^\S{0,200}python[\d.]*: No module named "
            r"|^make(?:\[\d+\])?: [\w.+-]{1,80}: No such file or directory|env: .{1,80}: No such file or directory"
            r"|executable file not found in \$PATH|^spawn \S{1,80} ENOENT|linker `\S{1,80}` not found"
            r"|error: no such command: |error: toolchain '.{1,80}' is not installed",
        ),
        (
            "memory",
            r"\bMemoryError\b|\bENOMEM\b|Cannot allocate memory|heap out of memory|OutOfMemoryError|std::bad_alloc"
            r"|^Killed$|\bKilled\s{2,}|signal: 9, SIGKILL",
        ),
        ("space", r"\bENOSPC\b|No space left on device"),
        ("read-only", r"\bEROFS\b|Read-only file system"),
        (
            "keyboard",
            r"problem with the editor 'false'|EOFError: EOF when reading a line|failed tty get|Error opening terminal"
            # Not ssh's harmless: Pseudo-terminal will not be allocated because ...
            r"|(?<!because stdin is )not a (?:tty|terminal)\b|no(?:t from a)? (?:tty|terminal)\b"
            r"|[Ii]nappropriate ioctl|/dev/tty",
        ),
    )
)
#: An output that ends with a question.
_QUESTION = late(r"[?:](?: (?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)))?:? ?\Z")
#: Errors of code: then a failure is not excused.
_FAULT = late(
    r"^(?:E\s{1,20})?\s{0,20}(?:\w{1,80}\.){0,8}(?:Assertion|Syntax|Type|Name|Attribute|Import|ModuleNotFound|Reference|"
    r"Indentation|Key|Index|Value|ZeroDivision|Range)Error\b|^E\s{1,20}assert\b|assertion .{0,400}failed|panicked at"
    r"|^\s{0,20}expect\(received\)|\berror(?: TS\d{1,6}|\[E\d{1,6}\])|:\d{1,7}(?::\d{1,7})?: (?:fatal )?error\b"
    r"|\bundefined: \w|cannot find symbol|^\s{0,20}panic: "
)
_ASSERTED = late(
    r"^(?:E\s{1,20})?\s{0,20}(?:\w{1,80}\.){0,8}AssertionError\b|^E\s{1,20}assert\b|expect\(received\)"
    r"|assertion .{0,400}failed"
)
#: Lines read from the end, and their length.
_MOST_LINES, _WIDEST = 2_000, 2_000


def cause_of(
    how: str, status: int, output: str, *, emptied: Sequence[str] = (), full: bool = False
) -> Cause | None:
    """Returns the cause of a failed command, or None. Blocking.

    - how, status: as in `RunResult`.
    - emptied: files that are empty for commands.
    - full: no space was left.
    """
    if how in _LIMITS:
        return Cause("keyboard" if how == "keyboard" else "limit", _LIMITS[how], True)
    if how != "exit":
        return None
    lines = [line[:_WIDEST] for line in output.splitlines()[-_MOST_LINES:]]
    found: dict[Kind, int] = {}
    for line in lines:
        kind = next((kind for kind, sign in _SIGNS if sign.search(line)), None)
        if kind is None and any(_names(line, path) for path in emptied):
            kind = "emptied"
        if kind is not None:
            found[kind] = found.get(kind, 0) + 1
    if full:
        found["space"] = found.get("space", 0) + 1
    if status in (126, 127):
        found = {"program": 1}
    elif not found and status in (137, -9):
        found = {"memory": 1}
    elif not found and status and _QUESTION.search(output[-_WIDEST:]):
        found = {"keyboard": 1}
    if not found:
        return None
    kind = max(found, key=lambda one: found[one])
    failed = outcome_of(output).failed or 1
    # An assertion about an emptied file fails.
    faults = (line for line in lines if kind != "emptied" or not _ASSERTED.search(line))
    alone = sum(found.values()) >= failed and not any(_FAULT.search(line) for line in faults)
    # A prompt or missing write access may be a consequence of the change.
    may = kind not in ("keyboard", "read-only") or "editor 'false'" in output
    return Cause(kind, _WORDS[kind], status in (126, 127) or (alone and may))


def missing_programs(output: str) -> list[str]:
    """Returns the programs that a shell, make or a runner did not find."""
    found = (next(filter(None, one.groups())) for one in _MISSING.finditer(output[-_MOST_LINES * 80 :]))
    return list(dict.fromkeys(found))


_MISSING = late(
    r"(?:^|[:\s])([\w.+-]{1,80}): (?:command )?not found\b|^\S{0,200}python[\d.]*: No module named '?([\w.]{1,80})"
    r"|^make(?:\[\d+\])?: ([\w.+-]{1,80}): No such file|env: [‘'`]?([\w.+-]{1,80})[’'`]?: No such file"
    r"|exec: \"([\w./+-]{1,80})\": executable file not found|^spawn ([\w./+-]{1,80}) ENOENT",
    re.MULTILINE,
)


def _names(line: str, path: str) -> bool:
    name = path.rpartition("/")[2]
    return path in line or (len(name) > 4 and "." in name and name in line)

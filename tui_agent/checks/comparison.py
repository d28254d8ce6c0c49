"""Failures that a change causes: those with it minus those without it; other causes of a failed command."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from tui_agent.checks.formats import Outcome
from tui_agent.checks.output import outcome_of, wrong_lines
from tui_agent.checks.reports import outcome_of_report
from tui_agent.files.lazy_regex import LazyRegex, late


class Finding(Struct, frozen=True):
    """- passed, failed: counts; None if unknown.
    - failures: names, repeated for each failure.
    - lines: normalized error lines, to compare runs of an unknown runner.
    """

    ok: bool
    status: int = 0
    passed: int | None = None
    failed: int | None = None
    failures: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class Difference(Struct, frozen=True):
    """Failures caused by a change, and earlier ones; None if they cannot be counted."""

    new: int | None = 0
    old: int | None = 0
    new_names: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()

    @property
    def is_worse(self) -> bool:
        return self.new != 0


def finding(ok: bool, status: int, output: str, report: Outcome) -> Finding:
    """Reads the runner's report, otherwise its output. Blocking."""
    printed = outcome_of(output)
    if printed.failed is None and (begin := output.find("<testsuite")) >= 0:
        printed = outcome_of_report(output[begin : output.rfind(">") + 1])
    passed, failed = (report if report.failed is not None else printed)[:2]
    names = printed.failures if len(printed.failures) >= len(report.failures) else report.failures
    lines = wrong_lines(output) if not ok and not names else ()
    return Finding(ok, status, passed, failed, names, lines)


def difference(now: Finding, before: Finding) -> Difference:
    """Returns the failures of `now` that are not in `before`."""
    if now.ok:
        return Difference()
    if before.ok:
        return Difference(now.failed or len(now.failures) or None, 0, now.failures)
    if (before.failures or before.failed) and not now.failures and not now.failed:
        return Difference(None, None)
    if now.failures or before.failures:
        new, old = _apart(now.failures, before.failures)
        more = _unnamed(now) - _unnamed(before)
        return Difference(len(new) + max(0, more), len(old) + min(_unnamed(now), _unnamed(before)), new, old)
    if now.lines != before.lines or now.status != before.status:
        new, old = _apart(now.lines, before.lines)
        if now.failed is not None and before.failed is not None and now.failed > before.failed:
            return Difference(now.failed - before.failed, before.failed, new)
        if new or now.status != before.status:
            return Difference(len(new) or None, len(old), new)
    return Difference(0, now.failed or len(now.lines) or None)


def _apart(now: tuple[str, ...], before: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    left = Counter(before)
    new, old = [], []
    for name in now:
        if left[name] > 0:
            left[name] -= 1
            old.append(name)
        else:
            new.append(name)
    return tuple(new), tuple(old)


def _unnamed(found: Finding) -> int:
    return max(0, (found.failed or 0) - len(found.failures))


def still_there(first: Difference, now: Finding, before: Finding) -> tuple[Difference, tuple[str, ...]]:
    """Returns the difference after a second run, and the flaky failures: new in the first run, absent in the
    second.
    """
    again = difference(now, before)
    if not first.new_names:
        return again, ()
    new = tuple(name for name in first.new_names if name in again.new_names)
    gone = tuple(name for name in first.new_names if name not in again.new_names)
    if now.ok:
        return Difference(0, first.old, (), first.old_names), gone
    if not now.failures:
        return first, ()  # a broken run proves nothing
    if not again.new_names:
        return again if again.new else Difference(0, first.old, (), first.old_names), gone
    return Difference(len(new), first.old, new, first.old_names), gone


_WITH_VALUE = frozenset(
    ("-k", "-m", "-n", "-p", "-c", "-o", "-W", "-r", "--tb", "--maxfail", "--rootdir", "--cov")
)
MOST_ALONE = 20


def has_run(found: Finding, names: tuple[str, ...]) -> bool:
    """Whether a run of only these tests ran as many, if its runner counts them."""
    return found.passed is None or found.passed + (found.failed or 0) >= len(set(names))


def limited_to(command: str, failures: tuple[str, ...], script_runner: str = "") -> str:
    """Limits the last command joined by `&&`, if its runner, or `script_runner` for a script, can."""
    before, joined, last = command.rpartition(" && ")
    if not failures or len(failures) > MOST_ALONE or any(sign in last for sign in "|&;<>$`\n(){}*?"):
        return command
    try:
        words = shlex.split(last)
    except ValueError:
        return command
    if options := _selecting(script_runner, failures):
        alone = [*words, *["--"][: words[0] == "npm" and "--" not in words], *options]
    else:
        at = next((at for at, word in enumerate(words[:4]) if _program(word) in _KNOWN), len(words))
        alone = [*words[:at], *_alone(words[at:], failures)]
    return f"{before}{joined}{shlex.join(alone)}" if alone != words else command


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _alone(program: list[str], failures: tuple[str, ...]) -> list[str]:
    runner = _program(program[0]) if program else ""
    if runner == "pytest" and all("::" in name for name in failures):
        options = [
            word
            for at, word in enumerate(program[1:])
            if word.startswith("-") or (at and program[at] in _WITH_VALUE)
        ]
        return ["pytest", *options, *failures]
    tests_of_code = all(name.replace("::", "").isidentifier() for name in failures)  # Not doctests.
    if program[:2] == ["cargo", "test"] and "--" not in program and tests_of_code:
        going_on = [word for word in program if word != "--no-fail-fast"]
        return [*going_on, "--no-fail-fast", "--", "--exact", *failures]
    if program[:2] == ["go", "test"] and not any(word.startswith("-run") for word in program):
        tests = [name.rpartition(" ")[2].partition("/")[0] for name in failures]
        if all(name.isidentifier() for name in tests):
            return [*program, "-run", f"^({'|'.join(dict.fromkeys(tests))})$"]
    return [*program, *_selecting(runner, failures)]


def _selecting(runner: str, failures: tuple[str, ...]) -> list[str]:
    match runner:
        case "jest":
            return ["-t", _whole(name.replace(" › ", " ") for name in failures)]
        case "vitest":
            return ["-t", _whole(name.partition(" > ")[2].replace(" > ", " ") or name for name in failures)]
        case "mocha":
            return ["-g", _whole(failures)]
        case "ctest":
            return ["-R", _whole(failures).replace("?:", "")]
        case "rspec":
            return [word for name in failures for word in ("-e", name)]
        case "phpunit":
            tests = (re.escape(name.partition(" (")[0]) for name in failures)
            return ["--filter", f"/^(?:{'|'.join(tests)})(?: \\(|$)/"]
        case "unittest":
            found = [_UNITTEST.match(name) for name in failures]
            names = [f"{one[2].removesuffix(f'.{one[1]}')}.{one[1]}" for one in found if one]
            return [word for name in names for word in ("-k", name)] if len(names) == len(found) else []
    return []


def _whole(names: Iterable[str]) -> str:
    return f"^(?:{'|'.join(map(re.escape, names))})$"


_KNOWN = frozenset(
    ("pytest", "cargo", "go", "jest", "vitest", "mocha", "ctest", "rspec", "phpunit", "unittest")
)
_UNITTEST = late(r"^(\w{1,200}) \(([\w.]{1,300})\)")


Kind = Literal[
    "network", "docker", "service", "program", "memory", "space", "read-only", "keyboard", "emptied", "limit"
]


class Cause(NamedTuple):
    """words: a clause for the user. excused: the output shows no other problem, so no change of the files
    could fix it.
    """

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
#: The first match in output lines decides.
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
_QUESTION = late(r"[?:](?: (?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)))?:? ?\Z")
#: Errors of code, for which a failure is not excused.
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
    names = (path.rpartition("/")[2] for path in emptied)
    empty = [*emptied, *(name for name in names if len(name) > 4 and "." in name)]
    found: dict[Kind, int] = {}
    for line in lines:
        kind = next((kind for kind, sign in _SIGNS if sign.search(line)), None)
        if kind is None and any(name in line for name in empty):
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
    found = (next(filter(None, one.groups())) for one in _MISSING.finditer(output[-_MOST_LINES * 80 :]))
    return list(dict.fromkeys(found))


_MISSING = late(
    r"(?:^|[:\s])([\w.+-]{1,80}): (?:command )?not found\b|^\S{0,200}python[\d.]*: No module named '?([\w.]{1,80})"
    r"|^make(?:\[\d+\])?: ([\w.+-]{1,80}): No such file|env: [‘'`]?([\w.+-]{1,80})[’'`]?: No such file"
    r"|exec: \"([\w./+-]{1,80})\": executable file not found|^spawn ([\w./+-]{1,80}) ENOENT",
    re.MULTILINE,
)

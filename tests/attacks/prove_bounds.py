"""Text from outside that becomes a value: numbers, repeated signs in expressions over outputs, reports, structures."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.proofs.tally import Tally
from tui_agent.checks.output import outcome_of, places, wrong_lines
from tui_agent.checks.reports import MOST_REPORT, outcome_of_report
from tui_agent.context.blocks import inert, restored
from tui_agent.sandbox.run import plain
from tui_agent.settings.files import Unreadable, read_json, read_toml
from tui_agent.ui.safe_text import coloured
from tui_agent.ui.widgets import command_output

#: Seconds of the processor.
MOST_SECONDS = 0.5
UNITS = (
    *("\n", " ", "a", "1", ".", "/", "+", "-", "=", "(", "\t", "\r", "\b", '"', "#", "`", "é", "<", "~"),
    *(
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\x1b[1;",
        "\x1b[1m",
        "\x1b]0;x",
        "a/",
        "a.",
        "/a",
        "a/ ",
        "a b/",
        "a.b:1",
        "\n ",
    ),
    *(
        "1 passed",
        "1 failed, ",
        "in 1",
        " in 1.",
        "1 passed in 1",
        "Ran 1 test in 1s\n\nFAILED (",
        "1 passing\n",
    ),
    *("Tests 1 ", "Tests: 1 a, ", 'File "', "# pass 1\n", "## CHECK ", "{", '{"type":', "< /", "</context"),
)
#: What reads an output, with the letters of one that it gets at most.
READERS: dict[str, tuple[Callable[[str], object], int]] = {
    "counts of tests": (outcome_of, 16_000),
    "lines that tell of errors": (wrong_lines, 16_000),
    "places of failures": (lambda text: places(text, lambda _: ""), 16_000),
    "links to files": (lambda text: list(command_output.places(text)), 16_000),
    "colours": (coloured, 32_000),
    "escape sequences": (plain, 256_000),
    "headings": (lambda text: restored(inert(text)), 256_000),
    "a report": (outcome_of_report, 1_000_000),
}
LONG = "9" * 5000
NUMBERS = (
    *(
        f"{LONG} passed in 1.0s\n",
        f"Ran {LONG} tests in 1.0s\n\nOK\n",
        f"Found {LONG} errors\n",
        f"a.py:{LONG}: x",
    ),
    *(
        f"\x1b[{LONG}mred",
        f"\x1b[38;5;{LONG}mred",
        f"\x1b[38;2;{LONG};1;1mred",
        "\x1b[" + "1;" * 5000 + "mred",
    ),
    *(f'<testsuite tests="{LONG}"/>', f'<testsuite tests="{LONG}" failures="-{LONG}"/>'),
)
STRUCTURES = {
    "digits": (read_toml, f"a = {LONG}"),
    "digits in JSON": (read_json, LONG),
    "parts of a key": (read_toml, "a" + ".a" * 8000 + " = 1"),
    "lists": (read_toml, "a = " + "[" * 100_000),
    "lists in JSON": (read_json, "[" * 100_000),
    "size": (read_toml, "#" * 5_000_000),
}
REPORTS = {
    "elements": "<testsuite>" + "<a/>" * 900_000 + "</testsuite>",
    "attributes": "<testsuite " + " ".join(f'a{number}="b"' for number in range(300_000)) + "/>",
    "open tags": "<testsuite " * 300_000,
    "comments": "<!--" * 900_000,
    "entities": "<!DOCTYPE a [<!ENTITY a 'x'>"
    + "<!ENTITY b '&a;&a;'>" * 1000
    + "]><testsuite>&b;</testsuite>",
    "text": "<testsuite>" + "&amp;" * ((MOST_REPORT - 30) // 5) + "</testsuite>",
    "levels": "<a>" * 900_000,
}


def prove(tally: Tally, scale: float) -> None:
    """Readers × units that are repeated, numbers × readers, structures and reports × what they must stay below."""
    for name, (read, letters) in READERS.items():
        for unit in UNITS:
            text = (unit * letters)[: max(1000, round(letters * max(scale, 0.25)))]
            for tail in ("", "!"):
                _in_time(tally, "repeated signs", name, unit, lambda read=read, text=text + tail: read(text))
        for text in NUMBERS:
            _in_time(tally, "5,000 digits", name, text[:30], lambda read=read, text=text: read(text))
    for what, (read, text) in STRUCTURES.items():
        _in_time(
            tally, "structures", "TOML and JSON", what, lambda read=read, text=text: _refused(read, text)
        )
    for what, text in REPORTS.items():
        _in_time(tally, "structures", "a report", what, lambda text=text: outcome_of_report(text))


def _refused(read: Callable[[str], object], text: str) -> None:
    try:
        read(text)
    except Unreadable:
        return
    raise AssertionError("it was read")


def _in_time(tally: Tally, kind: str, column: str, what: str, work: Callable[[], object]) -> None:
    begun = time.process_time()
    try:
        work()
    except Exception as error:
        tally.case(f"bounds: {kind}", False, column=column, what=f"{what!r}: {error!r}"[:200])
        return
    spent = time.process_time() - begun
    tally.case(f"bounds: {kind}", spent < MOST_SECONDS, column=column, what=f"{what!r}: {spent:.2f} s")

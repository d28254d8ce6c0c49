"""What is being typed, laid over a text that changed beneath it."""

from __future__ import annotations

from random import Random

import pytest

from tui_agent.edits.merge import Overlay

BASE = "import os\n\ndef a():\n    return get(url, 0)\n\nend\n"
NOW = "import os\nimport sys\n\ndef a():\n    return get(url, 0, 5)\n\nend\nmore\n"


@pytest.mark.parametrize(
    ("typed", "both"),
    [
        (BASE, NOW),
        (BASE.replace("(url", "(xurl"), NOW.replace("(url", "(xurl")),
        (BASE.replace("0)", "0)  # hi"), NOW.replace("5)", "5)  # hi")),
        (BASE.replace("def", "xdef"), NOW.replace("def", "xdef")),
        (BASE.replace("os\n", "os, re\n"), NOW.replace("os\n", "os, re\n")),
        (BASE + "foo", NOW + "foo"),
        (BASE.replace("end", "e"), NOW.replace("end", "e")),
        (BASE.replace("    return get(url, 0)\n", ""), NOW),
    ],
)
def test_both_are_there(typed: str, both: str) -> None:
    assert Overlay(BASE, typed, NOW).text == both


def test_nothing_typed_is_lost_and_no_place_is_passed_over() -> None:
    random = Random(3)
    for _ in range(3000):
        base = "\n".join(f"l{random.randrange(8)}" for _ in range(random.randrange(8))) + random.choice(
            ["", "\n"]
        )
        now = _changed(base, random)
        at = random.randrange(len(base) + 1)
        to = random.choice([at, min(len(base), at + random.randrange(4))])
        new = random.choice(["", "#", "#typed#", "#\n#"])
        typed = base[:at] + new + base[to:]
        overlay = Overlay(base, typed, now)
        about = (base, typed, now, overlay.text)
        if now == base:
            assert overlay.text == typed, about
        if at == to:
            assert overlay.text.replace(new, "", 1) == now, about
        assert overlay.text.count("#") == new.count("#"), about
        places = [overlay.place(place) for place in range(len(typed) + 1)]
        assert places == sorted(places) and places[-1] <= len(overlay.text), about
        if new:
            assert overlay.text[overlay.place(typed.index(new)) :].startswith(new), about


def _changed(text: str, random: Random) -> str:
    lines = text.split("\n")
    for _ in range(random.randrange(4)):
        at = random.randrange(len(lines) + 1)
        lines[at : at + random.randrange(2)] = random.choice([[], ["new"], ["l3", "Z"]])
        lines = lines or [""]
    return "\n".join(lines)

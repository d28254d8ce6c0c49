"""`docs/architecture.md` says what is there: the layers, the places that a message passes, thirty terms at most."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PACKAGE = ROOT / "tui_agent"


def test_the_layers_are_those_that_are_checked() -> None:
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][
        0
    ]
    checked = [set(layer.split(" | ")) for layer in layers["layers"] if layer != "__main__"]
    told = [set(re.findall(r"`(\w+)`", row)) for row in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", TEXT, re.M)]
    assert told == checked
    assert {path.stem for path in PACKAGE.iterdir() if path.name[0] not in "_."} == set().union(*told)


def test_every_place_that_is_named_is_there() -> None:
    places = re.findall(r"`([\w/]+\.(?:py|toml))(?:: (\w+))?`", TEXT)
    assert len(places) > 20
    for name, part in places:
        path = ROOT / name if name.startswith("config/") else PACKAGE / name
        assert path.is_file(), name
        assert not part or re.search(rf"^(?:class|(?:async )?def) {part}\b", path.read_text("utf-8"), re.M), (
            name,
            part,
        )


def test_the_glossary_is_short_and_in_order() -> None:
    terms = re.findall(r"^- \*\*(.+?)\*\*: ", TEXT, re.M)
    assert len(terms) <= 30 and terms == sorted(terms)

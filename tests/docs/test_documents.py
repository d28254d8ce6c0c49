"""Documents: their lengths, their links, and a place for each generated table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.settings_page import PAGE, page

from tests.proofs.__main__ import DOCUMENTS

ROOT = Path(__file__).parents[2]
DOCUMENTS_OF_THE_PROJECT = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: Maximum number of words.
WORDS = {"README.md": 1200, "docs/security.md": 700, "docs/performance.md": 700}


@pytest.mark.parametrize(("path", "most"), WORDS.items())
def test_documents_for_users_are_short(path: str, most: int) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert len(text.split()) <= most
    assert "<!-- made by" not in text


@pytest.mark.parametrize("path", DOCUMENTS_OF_THE_PROJECT, ids=lambda path: path.name)
def test_links_and_pictures_exist(path: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_generated_tables_have_their_place_in_the_notes() -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        for proof, table in re.findall(r"<!-- made by make (\w+): (\w+) -->", path.read_text("utf-8")):
            assert DOCUMENTS[proof] == path
            assert (ROOT / "tests" / proof / f"prove_{table}.py").is_file()


def test_the_page_for_agents_is_short_and_its_places_exist() -> None:
    text = (ROOT / "AGENTS.md").read_text("utf-8")
    assert len(text.splitlines()) <= 60
    for named in re.findall(r"`((?:tui_agent|config|docs|tests|themes)/[^`]*)`", text):
        assert list(ROOT.glob(named.rstrip("/"))), named


def test_the_site_has_each_page_once_and_its_links_stay_inside() -> None:
    pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    named = re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == pages
    for path in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\((?!https://|#)([^)#\s]+)", path.read_text("utf-8")):
            assert (path.parent / target).resolve().is_relative_to(ROOT / "docs"), (path.name, target)


def test_the_page_of_the_settings_is_made_from_the_schema() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make site`"

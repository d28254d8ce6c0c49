"""A newcomer finds each part by its name in the tree: a package or the config folder, then the file."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLACES = {
    "the turn loop": ("tui_agent/turn/turn.py", "async def run("),
    "the reader of structured replies": ("tui_agent/answers/structured_reader.py", "class StructuredReader"),
    "the reader of replies with calls": ("tui_agent/answers/tools_reader.py", "class ToolsReader"),
    "the function that writes a file": ("tui_agent/files/batch.py", "def write_file("),
    "a key's binding": ("config/keys.toml", "[app]"),
    "the drawn plan": ("tui_agent/ui/panes/plan.py", "class PlanPane"),
    "compaction": ("tui_agent/turn/compaction.py", "async def fit_to_window("),
    "auto-apply": ("tui_agent/session/auto_apply.py", "async def auto_apply("),
    "masking": ("tui_agent/files/masking.py", "def masked("),
    "slash commands": ("tui_agent/ui/slash_commands.py", "COMMANDS"),
    "provider errors": ("tui_agent/model/provider_errors.py", "def explain("),
    "the sandbox": ("tui_agent/sandbox/namespace_view.py", "class "),
    "a tool's permission": ("tui_agent/tools/permission.py", "async def permitted("),
    "the prompt's words": ("config/system-prompt.json", '"sections"'),
    "the composed prompt": ("tui_agent/context/prompt.py", "def system_message("),
}


@pytest.mark.parametrize("part", PLACES)
def test_a_part_is_where_its_name_says(part: str) -> None:
    path, text = PLACES[part]
    assert text in (ROOT / path).read_text("utf-8")
    folder, _, name = path.removeprefix("tui_agent/").partition("/")
    assert "/" not in name or folder == "ui", "two clicks: the package, and the file"


def test_no_second_file_has_the_name_of_a_part() -> None:
    names = {Path(path).name for path, _ in PLACES.values() if path.startswith("tui_agent/")}
    found = [path.name for path in (ROOT / "tui_agent").rglob("*.py")]
    assert {name for name in names if found.count(name) > 1} <= {"plan.py", "prompt.py"}

"""The settings' schema, the file that ships, and values read from words."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import msgspec
import pytest

from tui_agent.settings import schema
from tui_agent.settings.folders import config_folder
from tui_agent.settings.schema import Settings, build, default_values, entries
from tui_agent.settings.values import checked, from_words, wanted

SHIPPED = config_folder() / "settings.toml"

#: The table of the contract, written down a second time.
CONTRACT = {
    "model": "",
    "planner_model": "",
    "protocol": "auto",
    "effort": "auto",
    "max_output": 0,
    "temperature": -1.0,
    "max_steps": 60,
    "request_timeout": 120,
    "outline_tokens": 1000,
    "base_files": ("knowledge.md",),
    "files_api": "off",
    "files.max_per_action": 20,
    "files.pattern_timeout": 2.0,
    "known.max_files": 500,
    "context.window": 0,
    "context.reset_at": 0.8,
    "context.reset_to": 0.5,
    "context.condense_at": 0.9,
    "context.keep_on_failure": 0.75,
    "models.transport": "auto",
    "models.fallbacks": (),
    "instructions.names": ("AGENTS.md", "TUI_AGENT.md", "KODELET.md", "CLAUDE.md"),
    "instructions.exclude": (),
    "instructions.max_bytes": 65536,
    "bundling.enabled": True,
    "bundling.imports": True,
    "bundling.tests": True,
    "bundling.max_files": 5,
    "bundling.depth": 1,
    "review.near_threshold": 0.9,
    "mode": "edit",
    "subtasks.begin": "ticked",
    "subtasks.max_parallel": 3,
    "subtasks.max_depth": 1,
    "subtasks.max_per_turn": 8,
    "limits.requests": 100,
    "limits.ask_at_cost": 2.0,
    "limits.turn_tokens": 0,
    "limits.session_tokens": 0,
    "limits.turn_cost": 0,
    "limits.session_cost": 0,
    "limits.turns": 0,
    "undo.max_bytes": 1024**3,
    "theme": "dark",
    "notify": "",
    "keys": "default",
    "commands.ask": "outside",
    "commands.timeout": 120,
    "commands.output_tokens": 2000,
    "checks.commands": (),
    "checks.run": "proposed",
    "checks.repairs": 2,
    "trial.tools": (),
    "trial.env": (),
    "trial.reveal": (),
    "trial.memory": 4_294_967_296,
    "trial.network": (),
    "trial.processes": 512,
}
#: Settings beside those of the contract.
MORE = {
    "hooks": {},
    "mcp.servers": {},
    "mcp.inline_tools": 20,
    "mcp.timeout": 120.0,
    "subtasks.max_seconds": 1800,
    "subtasks.max_tokens": 0,
    "subtasks.max_cost": 0,
    "subtasks.place": "",
    "subtasks.silent_after": 30,
    "screen.plain": False,
    "screen.bell_after": 20,
    "session.linger": 1800,
    "start.keep_ready": True,
    "start.idle": 1800,
    "models.options": (),
    "models.local_window": 32768,
    "limits.repeat": 100,
    "tools.off": (),
    "tools.web": False,
    "permissions.deny": (),
    "permissions.ask": (),
    "permissions.allow": (),
    "trial.kept": 2_147_483_648,
    "remote.hosts": (),
    "places": (),
}


def flat(table: dict[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict) and value:
            found.update(flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = tuple(value) if isinstance(value, list) else value
    return found


def words_of_the_schema() -> dict[str, str]:
    """The text under each field, by class and field."""
    found = {}
    for block in ast.parse(Path(schema.__file__).read_text()).body:
        if not isinstance(block, ast.ClassDef):
            continue
        for above, below in zip(block.body, block.body[1:], strict=False):
            if isinstance(above, ast.AnnAssign) and isinstance(below, ast.Expr):
                found[f"{block.name}.{ast.unparse(above.target)}"] = ast.literal_eval(below.value)
    return found


def words_of_the_file() -> dict[str, str]:
    """The comment above each setting, by dotted key."""
    found, comment, table = {}, "", ""
    for line in SHIPPED.read_text().splitlines():
        if line.startswith("#"):
            comment = line.removeprefix("# ")
        elif line.startswith("["):
            table = line.strip("[]") + "."
        elif "=" in line:
            found[table + line.partition(" =")[0]] = comment
    return found


def test_the_defaults_are_those_of_the_contract():
    assert default_values() == CONTRACT | MORE


def test_the_file_that_ships_holds_every_setting_with_its_default():
    assert flat(tomllib.loads(SHIPPED.read_text())) == default_values()


def test_the_file_that_ships_says_of_each_setting_what_the_schema_says():
    by_key = {}
    words = words_of_the_schema()
    for key in entries():
        group, _, name = key.rpartition(".")
        owner = type(getattr(Settings(), group)).__name__ if group else "Settings"
        by_key[key] = words[f"{owner}.{name}"]
    assert words_of_the_file() == by_key


def test_values_become_nested_settings():
    settings = build({"model": "openai/x", "files.max_per_action": 3, "limits.turns": 4})
    assert settings.model == "openai/x"
    assert settings.files.max_per_action == 3
    assert settings.limits.turns == 4
    assert settings.files.pattern_timeout == Settings().files.pattern_timeout


@pytest.mark.parametrize(
    ("key", "words", "value"),
    [
        ("max_steps", "3", 3),
        ("limits.turn_cost", "2", 2.0),
        ("undo.max_bytes", "1_000", 1000),
        ("bundling.enabled", "True", True),
        ("bundling.enabled", "false", False),
        ("theme", "light", "light"),
        ("model", "1", "1"),
        ("base_files", "a.md, b.md", ("a.md", "b.md")),
        ("base_files", '["a,b.md"]', ("a,b.md",)),
        ("base_files", "", ()),
    ],
)
def test_words_are_read_as_the_setting_wants_them(key, words, value):
    assert from_words(key, words) == value


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("max_steps", "many"),
        ("max_steps", "0"),
        ("max_steps", "1.5"),
        ("bundling.enabled", "yes please"),
        ("limits.turn_cost", "nan"),
        ("limits.turn_cost", "inf"),
        ("limits.turn_cost", "-1"),
        ("keys", "emacs"),
        ("base_files", "[1]"),
        ("base_files", "[broken"),
    ],
)
def test_words_that_do_not_fit_are_refused_with_what_is_wanted(key, words):
    with pytest.raises(ValueError):
        from_words(key, words)


@pytest.mark.parametrize("value", [True, "8", 8.5, None, [], {}])
def test_a_whole_number_is_nothing_else(value):
    with pytest.raises(ValueError, match="a whole number from 1 to 100"):
        checked("max_steps", value)


def test_every_setting_says_what_it_wants_and_takes_its_own_default():
    for key, entry in entries().items():
        assert wanted(key)
        assert checked(key, msgspec.to_builtins(entry.default)) == entry.default

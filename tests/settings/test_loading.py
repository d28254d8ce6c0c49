"""The layers of a configuration, and what becomes of a broken one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.errors import UsageError
from tui_agent.settings.files import line_of, nearest
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import ALLOWED, Layer, file_layer, load, narrowed, text_layer, variable
from tui_agent.settings.schema import Settings, default_values, entries


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def user_file() -> Path:
    return user_folders().config / "settings.toml"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path


def bring(workspace: Path, text: str) -> None:
    write(workspace / ".tui-agent" / "settings.toml", text)


def test_nothing_set_is_what_ships():
    loaded = load(environ={})
    assert (loaded.settings, loaded.sources, loaded.faults) == (Settings(), {}, ())


def test_the_nearest_layer_wins(user_file, workspace):
    write(user_file, 'theme = "user"\nprotocol = "tools"\nmax_steps = 7\noutline_tokens = 9\n')
    bring(workspace, 'theme = "workspace"\nmax_steps = 6\noutline_tokens = 2\n')
    environ = {**os.environ, "TUI_AGENT_THEME": "environment", "TUI_AGENT_OUTLINE_TOKENS": "3"}
    loaded = load(workspace=workspace, trusted=True, environ=environ, overrides=["theme=command line"])
    assert loaded.faults == ()
    assert loaded.settings.protocol == "tools"
    assert loaded.settings.max_steps == 6
    assert loaded.settings.outline_tokens == 3
    assert loaded.settings.theme == "command line"
    assert loaded.sources["protocol"] == str(user_file)
    assert loaded.sources["max_steps"] == str(workspace / ".tui-agent" / "settings.toml")
    assert loaded.sources["outline_tokens"] == "the environment"
    assert loaded.sources["theme"] == "--set"


def test_checks_are_tables_and_a_mistake_in_one_is_named(user_file):
    good = '[[checks.commands]]\nname = "tests"\ncommand = "pytest -q"\nfiles = ["*.py"]\n'
    write(user_file, good)
    (check,) = load().settings.checks.commands
    assert (check.name, check.command, check.when, check.files) == (
        "tests",
        "pytest -q",
        "proposed",
        ("*.py",),
    )
    write(user_file, f'{good}[[checks.commands]]\nname = "b"\ncomand = "x"\n')
    loaded = load()
    assert loaded.settings.checks.commands == ()
    assert "line 1: `checks.commands` cannot be" in str(loaded.faults[0])
    assert "write tables with name and command" in str(loaded.faults[0])


def test_a_dot_is_two_underscores_in_the_environment():
    for key in entries():
        assert variable(key).removeprefix("TUI_AGENT_").lower().replace("__", ".") == key
    environ = {**os.environ, "TUI_AGENT_BUNDLING__MAX_FILES": "2"}
    assert load(environ=environ).settings.bundling.max_files == 2


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_right_name(user_file):
    write(user_file, '# mine\ntheme = "light"\n\n[bundling]\nmax_fles = 3\n')
    loaded = load()
    (fault,) = loaded.faults
    assert (fault.where, fault.line, fault.key) == (str(user_file), 5, "bundling.max_fles")
    assert "did you mean `bundling.max_files`?" in str(fault)
    assert loaded.settings.theme == "light"
    assert loaded.settings.bundling.max_files == 5


def test_a_value_of_the_wrong_type_leaves_the_shipped_one_and_says_what_is_wanted(user_file):
    write(user_file, 'max_steps = "many"\nlimits.turn_cost = nan\nkeys = "emacs"\n')
    loaded = load()
    assert [fault.line for fault in loaded.faults] == [1, 2, 3]
    assert "a whole number from 1 to 100" in str(loaded.faults[0])
    assert 'one of "default", "vim"' in str(loaded.faults[2])
    assert loaded.settings == Settings()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'theme = "light"\ntheme = "dark"\n', 2),
        (b'theme = "light"\n[broken\n', 2),
        (b'theme = "light"\n\xff\xfe\n', 2),
        (b'theme = "light', 1),
    ],
)
def test_a_broken_file_counts_for_nothing_and_its_line_is_named(user_file, content, line):
    user_file.parent.mkdir(parents=True)
    user_file.write_bytes(content)
    loaded = load()
    (fault,) = loaded.faults
    assert (fault.where, fault.line) == (str(user_file), line)
    assert loaded.settings == Settings()


def test_deep_nesting_is_a_fault_and_no_crash():
    (fault,) = text_layer("x.toml", b"a = " + b"[" * 100_000).faults
    assert "not TOML" in str(fault)


def test_a_byte_order_mark_is_no_fault():
    assert text_layer("x.toml", b'\xef\xbb\xbftheme = "light"\n').values == {"theme": "light"}


def test_what_is_no_plain_file_is_a_fault(tmp_path):
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * 1_048_577)
    for path in (folder, pipe, large):
        layer = file_layer(path)
        assert len(layer.faults) == 1
        assert str(path) in str(layer.faults[0])


def test_a_group_is_no_setting_and_a_setting_no_group(user_file):
    write(user_file, "bundling = true\n[model]\nname = 'x'\n[files]\n")
    first, second = load().faults
    assert "`bundling` is a group of settings" in str(first)
    assert "there is no setting `model.name`" in str(second) or "`model` cannot be" in str(second)
    assert second.line == 2


def test_control_characters_of_a_key_are_written_out():
    (fault,) = text_layer("x.toml", b'"the\\u001b[31mme" = 1\n').faults
    assert "\x1b" not in str(fault)
    assert "\\x1b" in str(fault)


def test_reset_to_has_to_stay_below_reset_at(user_file):
    write(user_file, "[context]\nreset_at = 0.4\n")
    loaded = load()
    assert "`context.reset_to` (0.5) must be below `context.reset_at` (0.4)" in str(loaded.faults[0])
    assert loaded.settings.context == Settings().context
    assert "context.reset_at" not in loaded.sources


def test_an_unknown_variable_of_ours_is_a_fault_in_its_own_spelling():
    (fault,) = load(environ={**os.environ, "TUI_AGENT_BUNDLING__MAX_FLES": "3"}).faults
    assert "did you mean `TUI_AGENT_BUNDLING__MAX_FILES`?" in str(fault)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("bundling.max_fles=3", "did you mean `bundling.max_files`?"),
        ("theme", "write --set KEY=VALUE"),
        ("max_steps=many", "a whole number"),
        ("files=3", "is a group of settings"),
        ("=3", "there is no setting"),
        (f"base_files={'[' * 5_000}", "a list"),
    ],
)
def test_a_wrong_override_is_a_wrong_argument(override, words):
    with pytest.raises(UsageError) as caught:
        load(overrides=[override])
    assert words in str(caught.value)
    assert caught.value.exit_status == 2


def test_a_later_override_wins_and_a_value_may_hold_an_equals_sign():
    loaded = load(overrides=["theme=a", "model=a=b", "theme=b"])
    assert (loaded.settings.theme, loaded.settings.model) == ("b", "a=b")


def _another(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}-other"
    return (*value, "other")


@pytest.mark.parametrize("source", ["user", "workspace", "environment", "--set"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("instructions.names", "../AGENTS.md"),
        ("instructions.names", "/home/me/.ssh/id_rsa"),
        ("instructions.names", "docs/AGENTS.md"),
        ("instructions.names", ".."),
        ("instructions.names", ""),
        ("instructions.names", "a\\u0000b"),
        ("base_files", "../*"),
        ("base_files", "/etc/passwd"),
        ("base_files", "~/.ssh/*"),
        ("base_files", "a/../../b"),
        ("instructions.exclude", "/etc/*"),
    ],
)
def test_no_path_in_a_setting_leads_out_wherever_it_comes_from(user_file, workspace, source, key, value):
    line = f'{key} = ["{value}"]\n'
    if source == "--set":
        with pytest.raises(UsageError, match="cannot be"):
            load(overrides=[f'{key}=["{value}"]'])
        return
    environ = dict(os.environ)
    match source:
        case "user":
            write(user_file, line)
        case "workspace":
            bring(workspace, line)
        case "environment":
            environ[variable(key)] = f'["{value}"]'
    loaded = load(workspace=workspace, trusted=True, environ=environ)
    assert loaded.settings == Settings()
    assert len(loaded.faults) == 1 and "cannot be" in str(loaded.faults[0])


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "..", ""])
def test_a_theme_is_the_name_of_a_file(user_file, name):
    write(user_file, f'theme = "{name}"\n')
    loaded = load()
    assert loaded.settings.theme == "dark" and "without a folder" in str(loaded.faults[0])


class TestWorkspace:
    def test_brings_nothing_before_it_is_trusted(self, workspace):
        bring(workspace, 'theme = "theirs"\n[broken\n')
        assert load(workspace=workspace, trusted=False).settings == Settings()
        assert load(workspace=workspace, trusted=False).faults == ()

    @pytest.mark.parametrize(
        "line",
        [
            'model = "evil/model"',
            'planner_model = "evil/model"',
            'files_api = "on"',
            'autonomy = "auto"',
            'mode = "auto"',
            "max_steps = 61",
            "context.window = 1000000",
            "undo.max_bytes = 0",
            "subtasks.max_parallel = 4",
            "review.near_threshold = 0.6",
            'protocol = "tools"',
            "context.reset_at = 0.9",
            "context.keep_on_failure = 0.9",
            "bundling.max_files = 99",
            "bundling.depth = 5",
            "files.max_per_action = 1000",
            "known.max_files = 100000",
            "instructions.max_bytes = 16777216",
            "outline_tokens = 100000",
            "request_timeout = 3600",
            "subtasks.silent_after = 1",
            "checks.repairs = 9",
            '[[checks.commands]]\nname = "x"\ncommand = "x"',
        ],
    )
    def test_may_not_widen_anything_even_when_trusted(self, workspace, line):
        bring(workspace, f"{line}\n")
        loaded = load(workspace=workspace, trusted=True)
        assert loaded.settings == Settings()
        assert "a workspace may not" in str(loaded.faults[0])
        assert str(loaded.faults[0]).startswith(f"{workspace / '.tui-agent' / 'settings.toml'}, line 1: ")

    def test_may_set_what_the_list_names_and_nothing_else(self, workspace):
        """Of every setting, those that are to come included, some other value is refused unless the list names it."""
        free = {key for key, rule in ALLOWED.items() if rule == "free"}
        for key, entry in entries().items():
            other = _another(entry.default)
            layer = Layer("x", {key: other}, (), {key: 3})
            left = narrowed(layer, default_values())
            assert bool(left.values) == (key in free or (key in ALLOWED and not left.faults)), key
            if key not in ALLOWED:
                assert left.values == {} and left.faults[0].line == 3 and key in str(left.faults[0]), key

    def test_may_turn_off_and_never_on(self, user_file, workspace):
        write(user_file, "[bundling]\ntests = false\n")
        bring(workspace, "[bundling]\nimports = false\ntests = true\n")
        bundling = load(workspace=workspace, trusted=True).settings.bundling
        assert (bundling.imports, bundling.tests) == (False, False)

    def test_may_lower_a_limit_and_never_raise_or_lift_one(self, user_file, workspace):
        write(user_file, "[limits]\nturn_tokens = 100\nsession_tokens = 100\nturn_cost = 1.0\n")
        bring(workspace, "[limits]\nturn_tokens = 50\nsession_tokens = 0\nturn_cost = 2.0\nturns = 5\n")
        loaded = load(workspace=workspace, trusted=True)
        limits = loaded.settings.limits
        assert (limits.turn_tokens, limits.session_tokens, limits.turn_cost, limits.turns) == (
            50,
            100,
            1.0,
            5,
        )
        assert {fault.key for fault in loaded.faults} == {"limits.session_tokens", "limits.turn_cost"}

    def test_is_not_read_through_a_link(self, workspace, tmp_path_factory):
        outside = write(tmp_path_factory.mktemp("outside") / "settings.toml", 'theme = "theirs"\n')
        (workspace / ".tui-agent").mkdir()
        (workspace / ".tui-agent" / "settings.toml").symlink_to(outside)
        loaded = load(workspace=workspace, trusted=True)
        assert loaded.settings.theme == "dark"
        assert "not a link" in str(loaded.faults[0])

    def test_is_not_read_through_a_linked_folder(self, workspace, tmp_path_factory):
        outside = tmp_path_factory.mktemp("outside")
        write(outside / "settings.toml", 'theme = "theirs"\n')
        (workspace / ".tui-agent").symlink_to(outside)
        assert load(workspace=workspace, trusted=True).settings.theme == "dark"


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("a = 1\nb = 2\n", "b", 2),
        ('[one]\n# b = 1\n[two]\n"b" = 2\n', "two.b", 4),
        ("one.b = 2\n", "one.b", 1),
        ('a = """\nb = 1\n"""\nb = 2\n', "b", 4),
        ("one = {b = 2}\n", "one.b", 1),
        ("a = 1\n", "b", 0),
    ],
)
def test_the_line_of_a_key_is_found(text, key, line):
    assert line_of(text, key) == line


@given(st.sampled_from(sorted(entries())), st.data())
def test_a_key_with_one_letter_left_out_is_still_recognised(key, data):
    place = data.draw(st.integers(0, len(key) - 1))
    assert nearest(key[:place] + key[place + 1 :], entries()) != ""


@given(st.binary(max_size=200))
def test_no_bytes_whatever_stop_the_start(content):
    layer = text_layer("x.toml", content)
    assert set(layer.values) <= set(default_values())


def test_variables_that_are_no_settings_are_left_alone() -> None:
    environ = {"TUI_AGENT_HOME": "/nowhere", "TUI_AGENT_REPLAY_SPEED": "0", "TUI_AGENT_PARENT": "12"}
    assert load(environ=environ).faults == ()

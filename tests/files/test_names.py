"""Names of files: protected and refused names, and names on the screen."""

from __future__ import annotations

import pytest

from tui_agent.files.names import (
    display_path,
    fault_of_new,
    is_git,
    is_own,
    is_text,
    is_too_long,
    plain,
    same_letters,
    without_case,
)


@pytest.mark.parametrize(
    ("name", "git"),
    [
        (".git", True),
        (".GIT", True),
        ("git~1", True),
        (".git. . ", True),
        (".git::$INDEX_ALLOCATION", True),
        (".g\u200cit", True),
        ("\uff0egit", True),
        (".gitignore", False),
        ("git", False),
        (".git2", False),
        ("\u00e4.git", False),
    ],
)
def test_names_that_some_file_system_reads_as_git_s(name: str, git: bool) -> None:
    assert is_git(name) is git


def test_our_own_folder_in_every_spelling() -> None:
    names = (".tui-agent", ".TUI-Agent", ".tui-agent.", ".tui\u200d-agent", "tui-agent", ".tui-agent2")
    assert [is_own(name) for name in names] == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("a b.py", ""),
        ("\u00e4\u4e2d.py", ""),
        ("a\nb", "a control character"),
        ("a\u2028b", "a control character"),
        ("a\u2029b", "a control character"),
        ("a\udc80b", "not valid Unicode"),
        ("a\u202eb", "a bidirectional control character"),
        ("a\u200fb", "a bidirectional control character"),
        ("a\u200bb", "an invisible character"),
        ("a\\b", "a backslash"),
        (" a", "a space"),
        ("a ", "a space"),
        ("a.", "ends with a dot"),
        (".a", ""),
    ],
)
def test_what_a_new_name_may_not_have(name: str, fault: str) -> None:
    found = fault_of_new(name)
    assert fault in found and bool(found) is bool(fault)


def test_a_name_in_letters_digits_and_dashes() -> None:
    assert (plain("a-b"), plain("x" * 40)) == ("a-b", "x" * 40)
    assert plain("a/b") == "a-b-" + plain("a/b").rpartition("-")[2] != plain("a b")
    assert plain("x" * 41).startswith(f"{'x' * 40}-") and len(plain("x" * 41)) == 49
    assert len({plain(name) for name in ("", "/", "a", "a/", "/a", "A", "\udc80")}) == 7


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a\x1b\n\u202eb", "a\\x1b\\n\\u202eb"),
        ("x" * 160, "x" * 160),
        (f"{'a' * 81}{'b' * 80}", f"{'a' * 80} … {'b' * 80}"),
    ],
)
def test_a_path_on_the_screen(path: str, shown: str) -> None:
    assert display_path(path) == shown


def test_letters_and_lengths() -> None:
    assert [is_text(name) for name in ("\u00e4", "\udc80")] == [True, False]
    assert same_letters("a\u0308") == "\u00e4" and without_case("A\u0308") == "\u00e4" == without_case(
        "\u00c4"
    )
    assert [is_too_long("x" * size) for size in (4095, 4096)] == [False, True]
    assert is_too_long("\u00e4" * 2048)

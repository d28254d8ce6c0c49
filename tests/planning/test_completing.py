"""After the model's patterns comes the file whose name is almost the one asked for, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.answers.plans import FileAction
from tui_agent.planning.chain import completed, names_one, nearest
from tui_agent.workspace.index import Index

INDEX = Index(
    [
        "src/core/parse_config.py",
        "src/api/user.tsx",
        "src/api/__init__.py",
        "src/web/__init__.py",
        "lib/client/retry.py",
        "lib/server/retry.py",
        "docs/[draft] notes.md",
        "README.md",
    ]
)


def extra(*given: str, **how: Any) -> tuple[str, ...]:
    (action,) = completed([FileAction("It", given, **how)], INDEX)
    assert action.patterns == given
    return action.extra


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("src/parseConfig.py", "src/core/parse_config.py"),
        ("ParseConfig.py", "src/core/parse_config.py"),
        ("src/api/users.ts", "src/api/user.tsx"),
        ("src.core.parse_config", "src/core/parse_config.py"),
        ("src.core.parse_config.ParseError", "src/core/parse_config.py"),
        ("src.api", "src/api/__init__.py"),
        ("src/api.py", "src/api/__init__.py"),
        ("app/client/retry.py", "lib/client/retry.py"),
        ("draft/\\[DRAFT\\]_notes.md", "docs/\\[draft\\] notes.md"),
        ("readme.rst", "README.md"),
    ],
)
def test_another_spelling_folder_or_form_is_found(written: str, found: str) -> None:
    assert extra(written, "src/*", "**/*x*") == (found,)


def test_of_files_that_are_as_near_as_each_other_the_name_is_looked_for() -> None:
    assert extra("other/retry.py") == ("**/retry.py",)


@pytest.mark.parametrize(
    ("given", "how"),
    [
        (("README.md", "**/*"), {}),
        (("src/nothing.py", "**/nothing.py"), {}),
        (("src/*.py",), {"all": True}),
        (("src/parseConfig.py",), {"fallback": "create_new"}),
        (("**/*onfig*",), {}),
        (("other/retry.py", "**/retry.py"), {}),
        (("",), {}),
        (("../x", "/etc/passwd", "a" * 10_000), {}),
    ],
)
def test_what_needs_no_completing_gets_no_more_patterns(given: tuple[str, ...], how: dict[str, Any]) -> None:
    assert extra(*given, **how) == ()


def test_a_test_named_without_its_sign_is_found() -> None:
    index = Index(["src/api.py", "tests/test_api.py", "web/a.spec.ts", "web/b.test.ts", "web/b_test.ts"])
    for written, found in (
        ("tests/api.py", "tests/test_api.py"),
        ("web/a.ts", "web/a.spec.ts"),
        ("web/b.ts", ""),
    ):
        (action,) = completed([FileAction("It", (written, "**/nothing"))], index)
        assert action.extra[:1] == ((found,) if found else ())


def test_all_five_of_the_models_patterns_stay() -> None:
    five = ("a/parseConfig.py", "**/parseConfig.py", "a/*", "**/*parse*", "**/*.py")
    assert extra(*five) == ("src/core/parse_config.py",)


@pytest.mark.parametrize(
    ("pattern", "one"),
    [
        ("a/b.py", True),
        ("**/b.py", True),
        (r"a/\[b\].py", True),
        ("a/*", False),
        ("**/*b*", False),
        ("a/", False),
    ],
)
def test_whether_a_pattern_names_a_single_file(pattern: str, one: bool) -> None:
    assert names_one(pattern) == one


def test_the_nearest_agrees_in_the_last_folders() -> None:
    paths = ("a/x.py", "b/a/x.py", "b/c/x.py")
    assert nearest(FileAction("x", ("z/b/c/x.py", "**/x.py")), paths) == ("b/c/x.py",)
    assert nearest(FileAction("x", ("**/x.py",)), paths) == paths

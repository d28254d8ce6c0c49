"""File names in headers, info strings, labels and comments, and lines without a name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tui_agent.answers import file_names as names


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a.py", "a.py"),
        ('"a b"', "a b"),
        (r'"a\tb\n\\\"\v\0"', 'a\tb\n\\"\v0'),
        (r'"\303\244\777"', "ä\ufffd"),
        ('"open', '"open'),
        (r'"end\"', r'"end\"'),
    ],
)
def test_git_s_quotes_are_decoded(written: str, name: str) -> None:
    assert names.unquoted(written) == name


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a/x.py", "a/x.py"),
        ("a/x y.py\t2024-01-01", "a/x y.py"),
        ("a/x.py 2024-01-01 10:20:30.5 +0100", "a/x.py"),
        ("a/x.py  Mon, 1 Jan 2024 10:00", "a/x.py"),
        ("a/x.py (revision 12)", "a/x.py"),
        ('"a/\\303\\244" 2024', "a/ä"),
        ("a/x.py 2024", "a/x.py 2024"),
        ("x" * 20_000, "x" * 20_000),
        ("x" * 20_001, ""),
    ],
)
def test_a_header_has_a_name_and_perhaps_a_date(header: str, name: str) -> None:
    assert names.in_header(header) == name


@pytest.mark.parametrize(
    ("line", "both"),
    [
        ("a/x.py b/x.py", ("a/x.py", "b/x.py")),
        ("a/x y.py b/x y.py", ("a/x y.py", "b/x y.py")),
        ("x.py x.py", ("x.py", "x.py")),
        ("a/x.py b/y.py", ("a/x.py", "b/y.py")),
        ("a/x y.py b/z.py", ("a/x y.py", "b/z.py")),
        ("i/x y w/z", ("i/x y", "w/z")),
        ("x y z", ("", "")),
        ("x y", ("x", "y")),
        ('"a/x y" "b/\\303\\244"', ("a/x y", "b/ä")),
        ('"a/x y" b/z', ("a/x y", "b/z")),
        ('"a/\\303\\244" b/z', ("a/ä", "b/z")),
        ('a/x "b/y z"', ("a/x", "b/y z")),
        ("x" * 20_001, ("", "")),
    ],
)
def test_a_line_of_git_has_two_names(line: str, both: tuple[str, str]) -> None:
    assert names.of_git_line(line) == both


@pytest.mark.parametrize(
    ("old", "new", "bare", "expected"),
    [
        ("a/x", "b/x", False, ("x", "x")),
        ("a/x", "b/y", False, ("x", "y")),
        ("a/x", "b/x", True, ("a/x", "b/x")),
        ("a/x", "a/x", False, ("a/x", "a/x")),
        ("c/x", "i/x", False, ("x", "x")),
        ("1/x", "2/x", False, ("x", "x")),
        ("x/a", "y/a", False, ("x/a", "y/a")),
        ("a/x", "x", False, ("x", "x")),
        ("x", "b/x", False, ("x", "x")),
        ("a/x", "y", False, ("a/x", "y")),
        ("/dev/null", "b/x", False, ("/dev/null", "x")),
        ("/dev/null", "x/y", False, ("/dev/null", "x/y")),
        ("i/x", "/dev/null", False, ("x", "/dev/null")),
        ("b/x", "/dev/null", False, ("b/x", "/dev/null")),
        ("ab", "bc", False, ("ab", "bc")),
        ("a/x", "bx", False, ("a/x", "bx")),
    ],
)
def test_prefixes_of_git_are_removed_in_pairs(
    old: str, new: str, bare: bool, expected: tuple[str, str]
) -> None:
    assert names.without_git_prefixes(old, new, bare) == expected


@pytest.mark.parametrize(
    ("old", "new", "aside"),
    [
        ("a.py.orig", "a.py", True),
        ("a.py~", "a.py", True),
        ("a.py.new", "a.py", False),
        ("x/a.py", "y/a.py", True),
        ("a.py", "b.py", False),
    ],
)
def test_an_old_file_may_be_put_aside(old: str, new: str, aside: bool) -> None:
    assert names.is_put_aside(old, new) is aside


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a.py", "./a.py", True),
        ("src/a.py", "a.py", True),
        ("a.py", "x/a.py", True),
        ("xa.py", "a.py", False),
    ],
)
def test_names_of_one_file(one: str, other: str, same: bool) -> None:
    assert names.same_file(one, other) is same


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("././a", "a"),
        (".//a", "a"),
        ("a//b/./c", "a/b/c"),
        ("/a//b", "/a/b"),
        ("//a", "//a"),
        ("a/././b", "a/b"),
        ("./" + "x" * 20_000, "./" + "x" * 20_000),
    ],
)
def test_a_plain_name_has_no_empty_parts(path: str, plain: str) -> None:
    assert names.plain(path) == plain


@pytest.mark.parametrize(
    ("text", "is_path", "has_extension"),
    [
        ("a.py", True, True),
        ("src/a", True, False),
        ("a", False, False),
        ("Makefile", True, True),
        ("src/Makefile", True, True),
        ("src/a b.py", False, True),
        ("a.", False, True),
        ("src/a.", False, True),
        ("v1.2", False, True),
        ("a.b2", True, True),
        ("", False, False),
        (f"{'x' * 297}.py", True, True),
        (f"{'x' * 298}.py", False, True),
        ("a.abcdefghijklmnopqrstu", False, True),
    ],
)
def test_what_looks_like_a_path(text: str, is_path: bool, has_extension: bool) -> None:
    assert (names.is_path(text), names.has_extension(text)) == (is_path, has_extension)


INFOS = [
    ("", ""),
    ("python", ""),
    ("a.py", "a.py"),
    ("`a.py`", "a.py"),
    ("node.js", ""),
    ("Makefile", ""),
    ("python src/a.py", "src/a.py"),
    ('python "src/a.py"', "src/a.py"),
    ("python src", ""),
    ("12 src/a.py", ""),
    ("c++ a.cpp", "a.cpp"),
    ("py:src/a.py", "src/a.py"),
    ("py:src", ""),
    ("12:src/a.py", ""),
    ("title=a.py", "a.py"),
    ('python title="a.py"', "a.py"),
    ("python file:a.py", "a.py"),
    ("python {title='src/a.py'}", "src/a.py"),
    ("{a.py}", "a.py"),
    ("python title='a.py", ""),
    ('title="a b.py"', "a b.py"),
    ("title=a.py file=b.py", ""),
    (f"{'x' * 297}.py", f"{'x' * 297}.py"),
    (f"{'x' * 298}.py", ""),
]


@pytest.mark.parametrize(("info", "path"), INFOS)
def test_an_info_string_may_name_a_file(info: str, path: str) -> None:
    assert names.in_info(info) == path


LABELS = [
    ("**src/a.py**", "src/a.py"),
    ("### 1. src/a.py", "src/a.py"),
    ("Step 2/3: `src/a.py`", "src/a.py"),
    ("File: a.py", "a.py"),
    ("a.py (new)", "a.py"),
    ("**src/a.py** (new file)", "src/a.py"),
    ("(a.py)", "a.py"),
    ("a.py — the server:", "a.py"),
    ("[src/a.py](src/a.py):", "src/a.py"),
    ("Then edit file `a.py`:", "a.py"),
    ("__a.py__", "a.py"),
    ("some words", ""),
    ("the a.py of ours", ""),
    (f"{'x' * 297}.py", f"{'x' * 297}.py"),
    (f"{'x' * 298}.py", ""),
]


@pytest.mark.parametrize(("line", "path"), LABELS)
def test_a_label_names_a_file(line: str, path: str) -> None:
    assert names.in_label(line) == path


SENTENCES: list[tuple[Callable[[str], str], str, str]] = [
    (names.announced, "Here is the updated `src/a.py`:", "src/a.py"),
    (names.announced, "Here is the updated `src/a.py`", "src/a.py"),
    (names.announced, "Here is the updated src/a.py.", "src/a.py"),
    (names.announced, "Here is the updated a.py.", ""),
    (names.announced, "Here is the updated `src/a.py` now", ""),
    (names.announced, "It has `src/a.py`:", ""),
    (names.announced, "Add this below `src/a.py`:", ""),
    (names.announced, "Write `a.py` and `b.py`:", ""),
    (names.announced, "Write `a.py` and `./a.py`:", "a.py"),
    (names.announced, f"Write `a.py`{' ' * 287}:", "a.py"),
    (names.announced, f"Write `a.py`{' ' * 288}:", ""),
    (names.hinted, "In `a.py` it is", "a.py"),
    (names.hinted, "In src/x it is", ""),
    (names.hinted, "In src/a.foo it is", "src/a.foo"),
    (names.hinted, "In a.py it is", "a.py"),
    (names.hinted, "In a.foo it is", ""),
    (names.hinted, "In a.py:12 it is", ""),
    (names.hinted, "Around `a.py` it is", ""),
    (names.hinted, "`a.py` `b.py`", ""),
    (names.hinted, f"`a.py`{' ' * 294}", "a.py"),
    (names.hinted, f"`a.py`{' ' * 295}", ""),
    (names.hinted_in_comment, "# a.py", "a.py"),
    (names.hinted_in_comment, "<!-- file: src/a.html -->", "src/a.html"),
    (names.hinted_in_comment, "# src/a", ""),
    (names.hinted_in_comment, "a.py", ""),
    (names.hinted_in_comment, f"# {'x' * 294}.py", f"{'x' * 294}.py"),
    (names.hinted_in_comment, f"# {'x' * 295}.py", ""),
    (names.in_comment, "  // src/a.js", "src/a.js"),
    (names.in_comment, "/* file: src/a.css */", "src/a.css"),
    (names.in_comment, "# a.py", ""),
    (names.in_comment, "# src/a", ""),
    (names.in_sure_label, "### Node.js", ""),
    (names.in_sure_label, "### Client/Server", ""),
    (names.in_sure_label, "### src/a.py", "src/a.py"),
    (names.in_sure_label, "`a.py`", "a.py"),
    (names.in_sure_label, "File: a.py", "a.py"),
    (names.in_sure_label, "a.py:", ""),
    (names.in_any_label, "In `src/a.py`, replace:", "src/a.py"),
    (names.in_any_label, "In `a.py` and `b.py`:", ""),
    (names.in_any_label, "In src/a.py:", ""),
    (names.in_any_label, f"`a.py`{' ' * 594}", "a.py"),
    (names.in_any_label, f"`a.py`{' ' * 595}", ""),
]


@pytest.mark.parametrize(("read", "line", "path"), SENTENCES)
def test_a_line_may_name_one_file(read: Callable[[str], str], line: str, path: str) -> None:
    assert read(line) == path


@pytest.mark.parametrize(
    ("language", "path", "fits"),
    [
        ("python", "a.py", True),
        ("python", "src/A.PYI", True),
        ("python", "a.js", False),
        ("python", "Makefile", True),
        ("python", "x.y/Makefile", True),
        ("other", "a.js", True),
    ],
)
def test_a_language_excludes_files_of_others(language: str, path: str, fits: bool) -> None:
    assert names.fits(language, path) is fits

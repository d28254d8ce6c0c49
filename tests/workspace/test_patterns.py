"""Patterns mean what they mean in other programs, and never take long."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.workspace.patterns import InvalidPattern, Pattern, compile_pattern, escape


def compiled(text: str, *, ignore_case: bool = False) -> Pattern:
    pattern = compile_pattern(text, ignore_case=ignore_case)
    assert isinstance(pattern, Pattern), pattern
    return pattern


@pytest.mark.parametrize(
    ("text", "fits", "fits_not"),
    [
        ("a.py", ["a.py"], ["b/a.py", "a.pyc", "A.py", "a_py"]),
        ("./src/a.py", ["src/a.py"], ["a.py", "x/src/a.py"]),
        ("src//a.py", ["src/a.py"], ["srca.py"]),
        ("*.py", ["a.py", ".py", ".hidden.py"], ["b/a.py", "a.pyi"]),
        ("src/*", ["src/a", "src/.env"], ["src/a/b", "src", "xsrc/a"]),
        ("src/*/a.py", ["src/b/a.py"], ["src/a.py", "src/b/c/a.py"]),
        ("?.py", ["a.py"], ["ab.py", ".py", "/.py"]),
        ("[a-c].py", ["a.py", "c.py"], ["d.py", "-.py"]),
        ("[!a-c].py", ["d.py", "-.py"], ["a.py"]),
        ("[^a].py", ["b.py"], ["a.py"]),
        ("[]x].py", ["].py", "x.py"], ["y.py"]),
        (r"[\]x].py", ["].py", "x.py"], ["\\.py", r"\x.py", r"\]x].py"]),
        (r"[a\-c].py", ["a.py", "-.py", "c.py"], ["b.py", "\\.py"]),
        (r"[\\].py", ["\\.py"], ["].py"]),
        (r"[!\]a].py", ["b.py", "\\.py"], ["].py", "a.py"]),
        (r"[\a-c].py", ["b.py"], ["\\.py", "-.py"]),
        ("[&~|^].py", ["&.py", "~.py", "|.py", "^.py"], ["a.py"]),
        ("a[.py", ["a[.py"], ["a.py"]),
        ("**/a.py", ["a.py", "b/a.py", "b/c/a.py"], ["ba.py", "b/ba.py"]),
        ("src/**", ["src/a", "src/b/c"], ["src", "asrc/b"]),
        ("src/**/a.py", ["src/a.py", "src/b/c/a.py"], ["src/b/ba.py", "a.py"]),
        ("**/x/**/y/*.z", ["x/y/a.z", "1/x/2/3/y/a.z", "x/x/y/y/a.z"], ["x/a.z", "y/x/a.z", "x/y/b/a.z"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("docs/", ["docs/a", "docs/b/c"], ["docs", "xdocs/a"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t", "a.tsxx"]),
        ("{src,lib}/{a,b}.py", ["src/a.py", "lib/b.py"], ["src/c.py"]),
        ("{a,b/c}/d", ["a/d", "b/c/d"], ["b/d"]),
        ("x{,y}.py", ["x.py", "xy.py"], ["xx.py"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b"]),
        ("{a}", ["{a}"], ["a"]),
        ("{a{b},c}", ["a{b}", "c"], ["ab"]),
        ("{a,b", ["{a,b"], ["a"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("*{a,ab}c", ["xabc", "ac", "abac"], ["ab"]),
        (r"a\*b", ["a*b"], ["axb"]),
        (r"app/\[slug\]/p.tsx", ["app/[slug]/p.tsx"], ["app/s/p.tsx"]),
        ("*a*b*c", ["abc", "xaybzc", "aabbcc"], ["acb", "abcx"]),
        ("(group)/page.tsx", ["(group)/page.tsx"], ["group/page.tsx"]),
        ("a b\nc", ["a b\nc"], ["a b"]),
    ],
)
def test_a_pattern_means_what_it_means_elsewhere(text: str, fits: list[str], fits_not: list[str]) -> None:
    pattern = compiled(text)
    assert [path for path in fits if not pattern.fits(path)] == []
    assert [path for path in fits_not if pattern.fits(path)] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (".", "names nothing"),
        ("/etc/passwd", "absolute"),
        ("~/x", "absolute"),
        ("C:\\x", "absolute"),
        ("../x", "leads out"),
        ("a/../b", "leads out"),
        ("{..,a}/x", "leads out"),
        ("a\0b", "NUL"),
        ("a" * 10_000, "10,000 characters"),
        ("*a" * 100, "wildcards"),
        ("{a,b}" * 10, "too many"),
        ("{a," * 1000 + "}" * 1000, "too many"),
        ("!a", "not offered"),
        ("@(a|b)", "not offered"),
        ("*(a)", "not offered"),
        ("[[:alpha:]]", "not offered"),
        ("[z-a]", "backwards"),
        ("src\\api.py", "write '/'"),
    ],
)
def test_what_is_not_offered_says_so(text: str, why: str) -> None:
    found = compile_pattern(text)
    assert isinstance(found, InvalidPattern)
    assert why in found.why


def test_case_is_the_file_systems() -> None:
    assert not compiled("Src/*.PY").fits("src/a.py")
    assert compiled("Src/*.PY", ignore_case=True).fits("src/a.py")


@pytest.mark.parametrize("text", ["*a" * 32 + "b", "**/a" * 16 + "/b", "*?a" * 20 + "z", "**/*a*/" * 9 + "z"])
def test_a_catastrophic_pattern_ends(text: str) -> None:
    pattern = compiled(text)
    assert not pattern.fits("a" * 3000)
    assert not pattern.fits("a/" * 1500 + "a")
    assert not pattern.fits("aaaa/" * 600 + "aaa")


@given(st.text(alphabet="ab*?[]{},\\!()/. ^-", min_size=1, max_size=12))
def test_an_escaped_path_is_an_exact_one(path: str) -> None:
    if re.search(r"^[!/~]|//|/$|(^|/)\.{1,2}(/|$)|[@?*+!]\(", path) or not path.strip():
        return
    pattern = compile_pattern(escape(path))
    assert isinstance(pattern, Pattern), (escape(path), pattern)
    assert [alternative.exact for alternative in pattern.alternatives] == [path]
    assert pattern.fits(path)


NAMES = st.text(alphabet="ab.", min_size=1, max_size=4).filter(lambda name: set(name) != {"."})
SEGMENTS = st.one_of(
    st.just("**"),
    st.text(alphabet="ab.*?", min_size=1, max_size=5).filter(
        lambda name: set(name) != {"."} and "**" not in name
    ),
)


def fits_by_segments(pattern: list[str], path: list[str]) -> bool:
    """The meaning of a pattern in its plainest words: each segment by `fnmatch`, `**` for any run of folders."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(path)
        return any(fits_by_segments(pattern[1:], path[start:]) for start in range(len(path)))
    if not path:
        return False
    return fnmatch.fnmatchcase(path[0], pattern[0]) and fits_by_segments(pattern[1:], path[1:])


@given(st.lists(SEGMENTS, min_size=1, max_size=5), st.lists(NAMES, min_size=1, max_size=5))
def test_matching_is_what_the_plainest_words_say(segments: list[str], names: list[str]) -> None:
    pattern = compiled("/".join(segments))
    assert pattern.fits("/".join(names)) == fits_by_segments(segments, names)

"""The index answers as a plain list of all paths would, only faster."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.workspace import index as index_module
from tui_agent.workspace.index import Index
from tui_agent.workspace.patterns import Pattern, compile_pattern

PATHS = [
    "README.md",
    "docs/a.md",
    "docs/sub/b.md",
    "src/api.py",
    "src/api/client.py",
    "src/api/orders.py",
    "src-old/api.py",
    "tests/test_orders.py",
]
TREES = st.sets(
    st.lists(st.sampled_from(["a", "b", "a-b", "a.b", "é", "Z"]), min_size=1, max_size=4).map("/".join),
    max_size=25,
)


def pattern(text: str) -> Pattern:
    compiled = compile_pattern(text)
    assert isinstance(compiled, Pattern)
    return compiled


def test_folders_are_listed_one_level_at_a_time() -> None:
    index = Index(PATHS)
    assert index.folder() == (["docs", "src", "src-old", "tests"], ["README.md"])
    assert index.folder("src") == (["api"], ["api.py"])
    assert index.folder("src/api/") == ([], ["client.py", "orders.py"])
    assert index.folder("none") == ([], [])
    assert index.has_folder("src/api") and not index.has_folder("src/ap")


def test_an_empty_index_answers_too() -> None:
    index = Index()
    assert (index.folder(), index.paths, index.contains("a")) == (([], []), [], False)
    assert index.match(pattern("**")).count == 0
    assert (index.fuzzy("a"), index.nearest("a"), index.named(["a"])) == ([], [], {"a": []})


@given(TREES, TREES, st.sets(st.sampled_from(["a", "b", "a/b", "a-b", "Z/é"])))
def test_updating_is_what_a_set_would_do(before: set[str], added: set[str], removed: set[str]) -> None:
    index = Index(before)
    revision = index.revision
    changed = index.update(added, removed)
    kept = {
        path for path in before if not any(path == name or path.startswith(name + "/") for name in removed)
    }
    assert index.paths == sorted(kept | added)
    assert changed == (kept | added != before) == (index.revision > revision)


@given(TREES)
def test_a_folder_holds_what_its_paths_say(paths: set[str]) -> None:
    index = Index(paths)
    for folder in {"", *(path.rpartition("/")[0] for path in paths)}:
        prefix = folder + "/" if folder else ""
        rests = [path[len(prefix) :] for path in paths if path.startswith(prefix)]
        folders = sorted({rest.partition("/")[0] for rest in rests if "/" in rest})
        assert index.folder(folder) == (folders, sorted(rest for rest in rests if "/" not in rest))
        assert sorted(index.below(folder)) == sorted(path for path in paths if path.startswith(prefix))


@given(TREES, st.sampled_from(["a", "a/b", "**/b", "a/**", "*", "a*/**", "{a,b}/**/é", "**", "a.b/*", "Z/?"]))
def test_matching_is_what_looking_at_each_path_would_find(paths: set[str], text: str) -> None:
    compiled = pattern(text)
    found = Index(paths).match(compiled)
    assert sorted(found.paths) == sorted(path for path in paths if compiled.fits(path))
    assert found.count == len(found.paths) and found.complete


def test_many_matches_are_counted_and_few_handed_out() -> None:
    index = Index(f"d/{number:05}.py" for number in range(20_000))
    found = index.match(pattern("d/*.py"), limit=3)
    assert (found.paths, found.count) == (("d/00000.py", "d/00001.py", "d/00002.py"), 20_000)


def test_a_search_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module.time, "monotonic", lambda: 11.0)
    index = Index(f"d/{number:05}.py" for number in range(20_000))
    found = index.match(pattern("**/*.py"), deadline=10.0)
    assert not found.complete
    assert found.count == index_module.SLICE


def test_names_are_found_whatever_their_case() -> None:
    index = Index([*PATHS, "lib/API.ts"])
    assert index.named(["api", "ORDERS.py", "nothing"]) == {
        "api": ["lib/API.ts", "src-old/api.py", "src/api.py"],
        "ORDERS.py": ["src/api/orders.py"],
        "nothing": [],
    }


@given(
    TREES, st.sets(st.sampled_from(["a", "A", "a.b", "b", "a-b", "É", "none"])), st.sampled_from([2, 8192])
)
def test_names_are_those_that_a_look_at_every_path_finds(
    tree: set[str], names: set[str], slice_: int
) -> None:
    def is_called(path: str, name: str) -> bool:
        own = path.rpartition("/")[2].lower()
        return name.lower() in (own, own.rpartition(".")[0])

    with mock.patch.object(index_module, "SLICE", slice_):
        found = Index(tree).named(names)
    assert found == {name: [path for path in sorted(tree) if is_called(path, name)] for name in names}


@given(TREES, TREES)
def test_the_overview_is_made_once_for_as_long_as_the_folder_stays_as_it_is(
    before: set[str], added: set[str]
) -> None:
    index = Index(before)
    first = index.overview()
    changed = index.update(added)
    assert (index.overview() is first) == (not changed)
    folders = {path[:at] for path in before for at, sign in enumerate(path) if sign == "/"}
    counts = {folder: sum(path.startswith(folder + "/") for path in before) for folder in folders}
    assert first.files == tuple(sorted(path for path in before if "/" not in path))
    assert list(first.folders) == sorted(counts.items(), key=lambda one: (one[0].count("/"), one[0]))


def test_the_nearest_names_come_first() -> None:
    index = Index(PATHS)
    assert index.nearest("src/api/order.py")[0] == "src/api/orders.py"
    assert index.nearest("**/clients.py")[0] == "src/api/client.py"
    assert index.nearest("src/apy.py", 2) == ["src/api.py", "src-old/api.py"]
    assert index.nearest("zzzzzz") == index.nearest("") == []


def test_the_picker_finds_letters_in_order_and_prefers_names() -> None:
    index = Index(PATHS)
    assert index.fuzzy("orders")[:2] == ["src/api/orders.py", "tests/test_orders.py"]
    assert index.fuzzy("sapior") == ["src/api/orders.py"]
    assert index.fuzzy("API CLI")[0] == "src/api/client.py"
    assert index.fuzzy("", 2) == ["README.md", "docs/a.md"]
    assert index.fuzzy("xyz") == []


def test_the_picker_follows_changes() -> None:
    index = Index(PATHS)
    index.warm()
    index.update(["src/orders_new.py"], ["tests"])
    assert set(index.fuzzy("orders")) == {"src/api/orders.py", "src/orders_new.py"}
    index.update(["tests/test_orders.py"])
    assert "tests/test_orders.py" in index.fuzzy("orders")
    index.replace(["other.py"])
    assert index.fuzzy("orders") == []


def test_the_picker_stays_right_when_very_many_paths_go() -> None:
    index = Index([*(f"old/orders_{number}.py" for number in range(2000)), "new/orders.py"])
    index.warm()
    index.update(removed=["old"])
    assert index.fuzzy("orders") == ["new/orders.py"]

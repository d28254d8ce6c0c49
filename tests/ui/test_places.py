"""At any size every pane has one place, in it or as a tab, and places never overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region, Size

from tui_agent.store.state import LayoutSlice
from tui_agent.ui.layout.areas import Axis, areas, mode_of, resized
from tui_agent.ui.panes import PANES

SIZES = st.builds(Size, st.integers(20, 400), st.integers(6, 120))
#: Any set of panes but all of them.
HIDDEN = st.integers(0, 2 ** len(PANES) - 2).map(
    lambda bits: tuple(p for n, p in enumerate(PANES) if bits >> n & 1)
)


@given(SIZES, HIDDEN)
def test_every_pane_that_is_not_hidden_has_one_place(size: Size, hidden: tuple[str, ...]) -> None:
    found = [pane for place in areas(size, LayoutSlice(hidden=hidden)) for pane in place.panes]
    assert sorted(found) == sorted(set(PANES) - set(hidden))


STEPS = st.lists(
    st.tuples(st.sampled_from([*PANES]), st.sampled_from(["width", "height"]), st.integers(-90, 90)),
    max_size=4,
)


@given(SIZES, HIDDEN, STEPS)
def test_places_lie_on_the_screen_and_do_not_overlap(size: Size, hidden: tuple[str, ...], steps) -> None:
    layout = LayoutSlice(hidden=hidden)
    for pane, axis, count in steps:
        layout = resized(size, layout, pane, axis, count)
    found = areas(size, layout)
    taken = [region for place in found for region in (place.header, place.body) if region]
    for at, region in enumerate(taken):
        assert region in size.region
        assert not [other for other in taken[at + 1 :] if region.overlaps(other)]


@given(SIZES, st.sampled_from([*PANES]))
def test_the_pane_with_the_focus_is_in_front(size: Size, pane: str) -> None:
    assert pane in [place.front for place in areas(size, LayoutSlice(focus=pane))]


@given(SIZES, st.sampled_from([*PANES]))
def test_a_zoomed_pane_has_the_screen_for_itself(size: Size, pane: str) -> None:
    (place,) = areas(size, LayoutSlice(zoomed=pane))
    assert place.panes == (pane,)
    assert place.header.union(place.body).size == size if place.header else place.body.size == size


def test_a_chosen_tab_stays_in_front_when_the_focus_goes() -> None:
    layout = LayoutSlice(focus="chat", tabs={"wide.plan": "known"})
    assert "known" in [place.front for place in areas(Size(160, 48), layout)]


def region_of(layout: LayoutSlice, pane: str, size: Size) -> Region:
    return next(place.body for place in areas(size, layout) if pane in place.panes)


@pytest.mark.parametrize("pane", ["files", "buffers", "chat", "todos"])
@pytest.mark.parametrize("axis", ["width", "height"])
def test_a_pane_grows_and_shrinks_back(pane: str, axis: Axis) -> None:
    size, usual = Size(160, 48), LayoutSlice()
    grown = resized(size, usual, pane, axis, 5)
    assert getattr(region_of(grown, pane, size), axis) > getattr(region_of(usual, pane, size), axis)
    back = resized(size, grown, pane, axis, -5)
    assert region_of(back, pane, size) == region_of(usual, pane, size)


def test_what_has_nothing_beside_it_keeps_its_size() -> None:
    narrow, medium = Size(80, 24), Size(100, 40)
    for size, pane, axis in (
        (narrow, "chat", "width"),
        (narrow, "chat", "height"),
        (medium, "buffers", "height"),
    ):
        assert resized(size, LayoutSlice(), pane, axis, 1) == LayoutSlice()
    zoomed = LayoutSlice(zoomed="chat")
    assert resized(Size(160, 48), zoomed, "chat", "width", 1) == zoomed


def test_three_columns_two_or_one() -> None:
    assert [mode_of(width) for width in (160, 120, 119, 90, 89, 80)] == [
        "wide", "wide", "medium", "medium", "narrow", "narrow",
    ]  # fmt: skip
    columns = [{place.body.x for place in areas(Size(w, 40), LayoutSlice())} for w in (160, 100, 80)]
    assert [len(xs) for xs in columns] == [
        4,
        2,
        1,
    ]  # the third column of three ends in two panes side by side

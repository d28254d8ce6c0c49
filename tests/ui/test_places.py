"""At any size every pane has one place, in it or as a tab, and places never overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from tui_agent.store.state import LayoutSlice
from tui_agent.ui.actions import PANES
from tui_agent.ui.places import mode_of, places

SIZES = st.builds(Size, st.integers(20, 400), st.integers(6, 120))
#: Any set of panes but all of them.
HIDDEN = st.integers(0, 2 ** len(PANES) - 2).map(
    lambda bits: tuple(p for n, p in enumerate(PANES) if bits >> n & 1)
)


@given(SIZES, HIDDEN)
def test_every_pane_that_is_not_hidden_has_one_place(size: Size, hidden: tuple[str, ...]) -> None:
    found = [pane for place in places(size, LayoutSlice(hidden=hidden)) for pane in place.panes]
    assert sorted(found) == sorted(set(PANES) - set(hidden))


@given(SIZES, HIDDEN)
def test_places_lie_on_the_screen_and_do_not_overlap(size: Size, hidden: tuple[str, ...]) -> None:
    found = places(size, LayoutSlice(hidden=hidden))
    taken = [region for place in found for region in (place.header, place.body) if region]
    for at, region in enumerate(taken):
        assert region in size.region
        assert not [other for other in taken[at + 1 :] if region.overlaps(other)]


@given(SIZES, st.sampled_from(PANES))
def test_the_pane_with_the_focus_is_in_front(size: Size, pane: str) -> None:
    assert pane in [place.front for place in places(size, LayoutSlice(focus=pane))]


@given(SIZES, st.sampled_from(PANES))
def test_a_zoomed_pane_has_the_screen_for_itself(size: Size, pane: str) -> None:
    (place,) = places(size, LayoutSlice(zoomed=pane))
    assert place.panes == (pane,)
    assert place.header.union(place.body).size == size if place.header else place.body.size == size


def test_a_chosen_tab_stays_in_front_when_the_focus_goes() -> None:
    layout = LayoutSlice(focus="chat", tabs={"wide.plan": "known"})
    assert "known" in [place.front for place in places(Size(160, 48), layout)]


def test_three_columns_two_or_one() -> None:
    assert [mode_of(width) for width in (160, 120, 119, 90, 89, 80)] == [
        "wide", "wide", "medium", "medium", "narrow", "narrow",
    ]  # fmt: skip
    columns = [{place.body.x for place in places(Size(w, 40), LayoutSlice())} for w in (160, 100, 80)]
    assert [len(xs) for xs in columns] == [
        4,
        2,
        1,
    ]  # the third column of three ends in two panes side by side

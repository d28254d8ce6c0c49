"""At any size every pane has one place, in it or as a tab, and places never overlap."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual.geometry import Region, Size

from tui_agent.store.state import LayoutSlice, State, TurnSlice
from tui_agent.ui.layout.areas import AT_FIRST, Axis, Needs, SpaceNeed, areas, mode_of, needs_of, resized
from tui_agent.ui.panes import PANES

SIZES = st.builds(Size, st.integers(20, 400), st.integers(6, 120))
#: Any set of panes but all of them.
HIDDEN = st.integers(0, 2 ** len(PANES) - 2).map(
    lambda bits: tuple(p for n, p in enumerate(PANES) if bits >> n & 1)
)


#: Any panes that have something to show, of which some want little room.
NEEDS = st.dictionaries(
    st.sampled_from([*PANES]),
    st.builds(SpaceNeed, st.sampled_from([1, 6, 999]), st.sampled_from([20, 999]), st.booleans()),
).map(lambda found: {**AT_FIRST, **found})


@given(SIZES, HIDDEN, NEEDS)
def test_every_pane_that_is_not_hidden_has_one_place(
    size: Size, hidden: tuple[str, ...], needs: Needs
) -> None:
    found = [pane for place in areas(size, LayoutSlice(hidden=hidden), needs) for pane in place.panes]
    assert sorted(found) == sorted(set(PANES) - set(hidden))


STEPS = st.lists(
    st.tuples(st.sampled_from([*PANES]), st.sampled_from(["width", "height"]), st.integers(-90, 90)),
    max_size=4,
)


@given(SIZES, HIDDEN, STEPS, NEEDS)
@example(Size(160, 6), (), [("plan", "height", -1), ("files", "height", -1)], AT_FIRST)
def test_places_lie_on_the_screen_and_do_not_overlap(
    size: Size, hidden: tuple[str, ...], steps, needs: Needs
) -> None:
    layout = LayoutSlice(hidden=hidden)
    for pane, axis, count in steps:
        layout = resized(size, layout, pane, axis, count, needs)
    found = areas(size, layout, needs)
    taken = [region for place in found for region in (place.header, place.body) if region]
    for at, region in enumerate(taken):
        assert region in size.region
        assert not [other for other in taken[at + 1 :] if region.overlaps(other)]


@given(SIZES, st.sampled_from([*PANES]), NEEDS)
def test_the_pane_with_the_focus_is_in_front(size: Size, pane: str, needs: Needs) -> None:
    found = next(place for place in areas(size, LayoutSlice(focus=pane), needs) if place.front == pane)
    assert found.body.height > 1 or size.height < 12


@given(SIZES, st.sampled_from([*PANES]))
def test_a_zoomed_pane_has_the_screen_for_itself(size: Size, pane: str) -> None:
    (place,) = areas(size, LayoutSlice(zoomed=pane))
    assert place.panes == (pane,)
    assert place.header.union(place.body).size == size if place.header else place.body.size == size


def test_a_chosen_tab_stays_in_front_when_the_focus_goes() -> None:
    layout = LayoutSlice(focus="files", tabs={"medium.chat": "review"})
    assert "review" in [place.front for place in areas(Size(130, 48), layout)]


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
    narrow, medium = Size(80, 24), Size(130, 40)
    for size, pane, axis in (
        (narrow, "chat", "width"),
        (narrow, "chat", "height"),
        (medium, "chat", "height"),
    ):
        assert resized(size, LayoutSlice(), pane, axis, 1) == LayoutSlice()
    zoomed = LayoutSlice(zoomed="chat")
    assert resized(Size(160, 48), zoomed, "chat", "width", 1) == zoomed


def test_three_columns_two_or_one() -> None:
    assert [mode_of(width) for width in (240, 160, 159, 120, 119, 80)] == [
        "wide", "wide", "medium", "medium", "narrow", "narrow",
    ]  # fmt: skip
    columns = [{place.body.x for place in areas(Size(w, 40), LayoutSlice())} for w in (160, 130, 100)]
    assert [len(xs) for xs in columns] == [
        4,
        2,
        1,
    ]  # the third column of three ends in two panes side by side


WIDE, USUAL = Size(160, 48), LayoutSlice()


def heights(needs: Needs, layout: LayoutSlice = USUAL, size: Size = WIDE) -> dict[str, int]:
    """The rows of each pane that is seen, titles left out."""
    return {place.front: place.body.height for place in areas(size, layout, needs) if place.front}


def test_what_is_empty_is_a_title() -> None:
    found = areas(Size(130, 48), LayoutSlice(), AT_FIRST)
    assert {place.front for place in found} == {"files", "chat", ""}
    assert [place.panes for place in found if not place.front] == [("plan",), ("known",), ("todos",)]


def test_from_the_first_turn_on_a_wide_screen_shows_no_empty_pane() -> None:
    begun = needs_of(State(turn=TurnSlice(number=1)))
    assert {place.front for place in areas(WIDE, USUAL, begun)} == {"files", "chat", ""}
    assert {"review", "plan", "known"} <= heights(needs_of(State())).keys()
    assert "review" in heights(begun, LayoutSlice(focus="review"))


def test_a_wide_screen_begins_with_what_files_known_plan_and_review_know() -> None:
    for width in (160, 240):
        found = areas(Size(width, 48), LayoutSlice(), AT_FIRST)
        assert {place.front for place in found} == {"files", "plan", "known", "review", "chat", ""}
        assert [place.panes for place in found if not place.front] == [("buffers",), ("todos", "subtasks")]


@pytest.mark.parametrize("width", [100, 120, 140, 160, 200, 240])
@pytest.mark.parametrize("pane", ["chat", "review", "buffers"])
def test_the_pane_in_use_has_room_for_ninety_columns_of_text(width: int, pane: str) -> None:
    used = "chat" if pane == "chat" else "review"
    layout = LayoutSlice(focus=pane, tabs={"centre": used})
    place = next(place for place in areas(Size(width, 48), layout) if place.front == pane)
    assert place.body.width >= 96


def test_the_review_takes_the_column_or_two_thirds_of_it() -> None:
    waits = {**AT_FIRST, "review": SpaceNeed(waits=True)}
    assert heights(waits)["review"] == WIDE.height - 2
    both = heights({**waits, "buffers": SpaceNeed()})
    assert both["review"] + 1 == 32 and both["buffers"] == 16
    decided = heights({**waits, "review": SpaceNeed(), "buffers": SpaceNeed()})
    assert decided["buffers"] == 24


def test_sizes_of_ones_own_win() -> None:
    needs = {**AT_FIRST, "review": SpaceNeed(waits=True), "buffers": SpaceNeed()}
    layout = resized(WIDE, LayoutSlice(), "buffers", "height", 10, needs)
    assert heights(needs, layout)["buffers"] == 26
    assert heights({**needs, "buffers": SpaceNeed(0)}, layout)["review"] == WIDE.height - 2
    assert heights(needs, layout)["buffers"] == 26


def test_todos_and_sub_tasks_share_by_need() -> None:
    few = {**AT_FIRST, "todos": SpaceNeed(3, 20)}
    (place,) = [place for place in areas(WIDE, LayoutSlice(), few) if place.front == "todos"]
    assert place.panes == ("todos", "subtasks") and place.body.height == 3
    both = areas(WIDE, LayoutSlice(), {**few, "subtasks": SpaceNeed(12, 96)})
    widths = {place.front: place.body.width for place in both}
    assert widths["subtasks"] > 2 * widths["todos"]


def test_todos_beside_a_large_graph_have_as_much_room() -> None:
    needs = {
        **AT_FIRST,
        "plan": SpaceNeed(),
        "review": SpaceNeed(waits=True),
        "todos": SpaceNeed(6, 52),
        "subtasks": SpaceNeed(20, 96),
    }
    widths = {place.front: place.body.width for place in areas(WIDE, LayoutSlice(), needs)}
    assert widths["todos"] >= 28 and widths["subtasks"] >= 28 and widths["review"] >= 36


def test_a_wide_screen_has_room_for_the_graph() -> None:
    needs = {
        **AT_FIRST,
        "todos": SpaceNeed(3, 30),
        "subtasks": SpaceNeed(20, 96),
        "review": SpaceNeed(waits=True),
    }
    shown = {p.front: p.body.width for p in areas(Size(220, 50), LayoutSlice(), needs)}
    assert shown["subtasks"] > 50 and shown["todos"] >= 29 and shown["review"] >= 70

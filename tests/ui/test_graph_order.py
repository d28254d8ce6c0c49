from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.ui.graph.graph_view import LayerItem, crossings, order_layers


def tied(*lines: tuple[str, str], layers: list[list[str]]) -> list[list[LayerItem]]:
    items = {name: LayerItem(name) for layer in layers for name in layer}
    for source, target in lines:
        items[source].targets.append(items[target])
        items[target].sources.append(items[source])
    return [[items[name] for name in layer] for layer in layers]


@st.composite
def layered(draw: st.DrawFn) -> list[list[LayerItem]]:
    layers = [[f"{depth}.{n}" for n in range(draw(st.integers(1, 6)))] for depth in range(3)]
    pairs = [(a, b) for here, there in pairwise(layers) for a in here for b in there]
    return tied(*draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)), layers=layers)


def test_lines_that_need_not_cross_do_not():
    layers = tied(
        ("a", "x"), ("b", "y"), ("c", "z"), ("x", "end"), layers=[["a", "b", "c"], ["z", "y", "x"], ["end"]]
    )
    assert crossings(layers) == 3
    order_layers(layers)
    assert crossings(layers) == 0


def test_neighbours_change_places_where_the_middle_of_their_lines_is_the_same():
    layers = tied(
        ("a", "y"), ("e", "y"), ("c", "x"), ("d", "x"), ("b", "x"), layers=[list("abcde"), ["y", "x"]]
    )
    before = crossings(layers)
    order_layers(layers)
    assert crossings(layers) < before


@given(layered())
def test_no_order_is_worse_than_the_one_that_was_given(layers):
    before, names = crossings(layers), [sorted(item.name for item in layer) for layer in layers]
    order_layers(layers)
    assert crossings(layers) <= before
    assert [sorted(item.name for item in layer) for layer in layers] == names

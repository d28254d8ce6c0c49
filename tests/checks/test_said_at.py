"""The name and the assertion of a failure at its place, as test runners print them."""

from __future__ import annotations

import pytest

from tui_agent.checks.output import said_at
from tui_agent.store.commands import Place

PYTEST = """\
_________________________________ test_total _________________________________

    def test_total():
>       assert total([1, 2]) == 4
E       assert 3 == 4
E        +  where 3 = total([1, 2])

tests/test_cart.py:7: AssertionError
________________________________ test_price[0] _______________________________

    def test_price(n):
>       raise KeyError(n)
E       KeyError: 0

tests/test_cart.py:31: KeyError
"""
UNITTEST = """\
FAIL: test_sum (tests.test_a.Sums.test_sum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/work/p/tests/test_a.py", line 12, in test_sum
    self.assertEqual(add(1, 1), 3)
AssertionError: 2 != 3
"""
NODE = """\
✖ adds (1.2ms)
  AssertionError [ERR_ASSERTION]: 2 == 3
      at TestContext.<anonymous> (file:///p/test/sum.test.js:5:10)
"""
GO = """\
--- FAIL: TestSum (0.00s)
    sum_test.go:9: got 2, want 3
"""
MYPY = 'src/a.py:3: error: Incompatible types in assignment (expression has type "str")\n'


@pytest.mark.parametrize(
    ("output", "place", "names", "said"),
    [
        (
            PYTEST,
            Place("tests/test_cart.py", 7),
            ("tests/test_cart.py::test_total",),
            "test_total: assert 3 == 4",
        ),
        (
            PYTEST,
            Place("tests/test_cart.py", 31),
            ("tests/test_cart.py::test_total", "tests/test_cart.py::test_price[0]"),
            "test_price[0]: KeyError: 0",
        ),
        (
            UNITTEST,
            Place("tests/test_a.py", 12),
            ("test_sum (tests.test_a.Sums.test_sum)",),
            "test_sum: AssertionError: 2 != 3",
        ),
        (NODE, Place("test/sum.test.js", 5), ("adds",), "adds: AssertionError [ERR_ASSERTION]: 2 == 3"),
        (GO, Place("sum_test.go", 9), ("TestSum",), "TestSum: got 2, want 3"),
        (
            MYPY,
            Place("src/a.py", 3),
            (),
            'error: Incompatible types in assignment (expression has type "str")',
        ),
        ("nothing of the kind\n", Place("src/a.py", 3), ("test_x",), ""),
    ],
    ids=["pytest", "pytest, second", "unittest", "node", "go", "mypy", "nothing"],
)
def test_a_failure_has_its_name_and_assertion(
    output: str, place: Place, names: tuple[str, ...], said: str
) -> None:
    assert said_at(output, [place], names) == (said,)

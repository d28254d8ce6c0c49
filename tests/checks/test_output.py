"""What real programs print on the same small project: counts, names of failures, places.

`outputs/` holds one output for each; `/project` stands for the folder of the project. Those of dotnet, nextest,
surefire 3 and JUnit 5 under gradle are written after their documents.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.checks.formats import Outcome
from tui_agent.checks.output import outcome_of, places, wrong_lines

OUTPUTS = Path(__file__).parent / "outputs"

WRONG_AND_ERROR = ("tests/test_shop.py::Shop::test_error", "tests/test_shop.py::Shop::test_wrong")
PYTEST_PLACES = ["tests/test_shop.py:12", "shop.py:5", "tests/test_shop.py:10"]
#: passed, failed, the first failures, the first places.
EXPECTED: dict[str, tuple[int | None, int | None, tuple[str, ...], list[str]]] = {
    "eslint-json": (None, 2, (), ["e.js:1", "e.js:2"]),
    "go-json-build": (1, 2, ("x.org/g TestA/one_two", "x.org/g/sub [build failed]"), ["sub/s.go:2"]),
    "mocha-json": (1, 2, ("shop adds", "shop deep boom"), ["t/m.js:1"]),
    "mypy-json": (None, 3, (), ["bad.py:1", "bad.py:2", "bad.py:3"]),
    "pylint-json": (None, 5, ("bad.py C0114 Missing module docstring",), ["bad.py:1", "bad.py:2", "bad.py:3"]),
    "pyright-json": (None, 3, (), ["bad.py:1", "bad.py:2", "bad.py:3"]),
    "rspec-json": (1, 2, ("shop is wrong", "shop raises"), ["spec/shop_spec.rb:4", "spec/shop_spec.rb:5"]),
    "ruff-json": (
        *(None, 3, ("/project/bad.py I001 Import block is un-sorted or un-formatted",)),
        ["bad.py:2", "bad.py:3"],
    ),
    "vitest-json": (1, 2, ("shop > cart adds two", "shop > cart deep boom"), ["a/x.test.js:1"]),
    "vitest-tap": (1, 2, ("adds two", "boom"), ["a/x.test.js:1"]),
    "ava": (0, 1, ("is wrong",), ["a/shop.mjs:3"]),
    "bats": (1, 1, ("is wrong",), ["a.bats:5"]),
    "cargo-all": (
        *(2, 3, ("tests::index", "tests::wrong", "outer_wrong")),
        ["src/lib.rs:2", "src/lib.rs:9", "tests/more.rs:4"],
    ),
    "cargo-build": (None, 1, (), ["src/lib.rs:13"]),
    "cargo-doc": (
        *(1, 4, ("inner::deep", "panics", "result", "src/lib.rs -")),
        ["src/lib.rs:9", "src/lib.rs:11"],
    ),
    "ctest-out": (1, 1, ("wrong",), ["src/bad.c:3"]),
    "deno": (1, 1, ("is wrong",), ["deno/a_test.js:2"]),
    "dotnet": (1, 2, ("Shop.Tests.ShopTest.Wrong", 'Shop.Tests.ShopTest.Adds(a: 1, b: -2, name: "x: y")'), []),
    "dotnet-10": (1, 1, ("Shop.Tests.ShopTest.Wrong",), ["ShopTest.cs:9"]),
    "dotnet-9": (1, 1, ("Shop.Tests.ShopTest.Wrong",), ["ShopTest.cs:9"]),
    "eslint": (None, 2, ("'a' is assigned a value but never used no-unused-vars",), ["ts/e.js:1"]),
    "flake8": (None, 3, ("bad.py F401 'os' imported but unused",), ["bad.py:1", "bad.py:2", "bad.py:4"]),
    "gcc": (
        *(None, 1, ("/project/src/bad.c error: ‘x’ undeclared (first use in this function)",)),
        ["src/bad.c:2"],
    ),
    "go": (None, 1, ("example.com/shop/cart TestWrong/b",), ["cart/cart_test.go:6"]),
    "go-build": (None, 1, ("example.com/shop/cart [build failed]",), ["cart/broken.go:2"]),
    "go-json": (1, 1, ("example.com/shop/cart TestWrong/b",), ["cart/cart_test.go:6"]),
    "go-panic": (
        *(None, 2, ("example.com/shop/cart TestWrong/b",)),
        ["cart/cart_test.go:6", "cart/cart.go:3", "cart/panic_test.go:3"],
    ),
    "go-v": (1, 1, ("example.com/shop/cart TestWrong/b",), ["cart/cart_test.go:6"]),
    "go-vet": (None, 2, ("b/b.go x declared but not used",), ["b/b.go:2", "a_test.go:5"]),
    "gtest": (1, 1, ("Shop.Wrong",), ["a.cc:3"]),
    "jasmine": (1, 1, ("shop is wrong",), ["jas/spec/shop_spec.js:4"]),
    "java-stack": (None, None, (), ["Boom.java:2", "Boom.java:3"]),
    "javac": (None, 1, ("X.java error: incompatible types: String cannot be converted to int",), ["X.java:1"]),
    "jest": (1, 2, ("shop › is wrong", "shop › throws"), ["j/shop.test.js:4", "shop.cjs:2", "j/shop.test.js:5"]),
    "maven": (
        *(2, 3, ("OtherTest.fails", "ShopTest.wrong", "ShopTest.error")),
        ["shop/ShopTest.java:12", "shop/ShopTest.java:9", "shop/OtherTest.java:7"],
    ),
    "minitest": (
        *(1, 2, ("TestShop#test_wrong", "TestShop#test_error")),
        ["test_shop.rb:5", "shop.rb:3", "test_shop.rb:6"],
    ),
    "mix": (1, 2, ("test is wrong (ShopTest)",), ["test/shop_test.exs:6", "test/shop_test.exs:7"]),
    "mocha": (
        *(1, 2, ("shop is wrong", "shop throws")),
        ["m/shop.cjs.test.cjs:4", "shop.cjs:2", "m/shop.cjs.test.cjs:5"],
    ),
    "mocha-deep": (
        *(1, 2, ("stands alone", "shop with tax when reduced by half is wrong")),
        ["md/deep.cjs:6", "md/deep.cjs:3"],
    ),
    "mypy": (
        *(None, 2, ('bad.py error: Incompatible return value type (got "int", expected "str") [return-value]',)),
        ["bad.py:3", "bad.py:4"],
    ),
    "node-stack": (None, None, (), ["shop.cjs:2", "boom.cjs:2", "boom.cjs:3"]),
    "nodetest": (1, 4, ("is wrong", "throws", "inner"), ["n/shop.test.cjs:3", "n/shop.test.cjs:4"]),
    "nodetest-spec": (
        *(1, 4, tuple(f"n/shop.test.cjs {name}" for name in ("is wrong", "throws", "inner"))),
        ["n/shop.test.cjs:3", "shop.cjs:2"],
    ),
    "php-stack": (None, None, (), ["shop.php:4"]),
    "phpunit": (
        *(1, 2, ("ShopTest::testError", "ShopTest::testWrong")),
        ["shop.php:4", "tests/ShopTest.php:9", "tests/ShopTest.php:7"],
    ),
    "phpunit-dox": (1, 2, (), ["tests/ShopTest.php:7", "shop.php:4", "tests/ShopTest.php:9"]),
    "phpunit-ok": (1, 0, (), []),
    "playwright": (1, 1, ("pw/a.spec.js › is wrong",), ["pw/a.spec.js:2", "pw/a.spec.js:3"]),
    "prove": (
        *(2, 3, ("is wrong t/shop.t", "t/shop.t", "t/dies.t")),
        ["lib/Shop.pm:3", "t/shop.t:4", "t/shop.t:5"],
    ),
    "pylint": (None, 4, ("bad.py C0114: Missing module docstring (missing-module-docstring)",), ["bad.py:1"]),
    "pyright": (None, 2, (), ["bad.py:3", "bad.py:4"]),
    "pytest": (1, 2, WRONG_AND_ERROR, PYTEST_PLACES),
    "pytest-line": (
        *(1, 7, ("test_a.py::test_p[a b]", "test_a.py::test_p[c - d]", "test_a.py::test_p[e::f]")),
        ["test_a.py:3"],
    ),
    "pytest-q": (1, 2, WRONG_AND_ERROR, PYTEST_PLACES),
    "pytest-xdist-v": (1, 2, WRONG_AND_ERROR[::-1], [PYTEST_PLACES[2], *PYTEST_PLACES[:2]]),
    "rspec": (1, 2, ("shop is wrong", "shop raises"), ["spec/shop_spec.rb:6", "spec/shop_spec.rb:4", "shop.rb:3"]),
    "rubocop": (None, 5, (), ["test_shop.rb:1", "test_shop.rb:3"]),
    "ruby-stack": (None, None, (), ["shop.rb:3"]),
    "ruff": (None, 2, ("I001 [*] Import block is un-sorted or un-formatted bad.py",), ["bad.py:1"]),
    "ruff-concise": (None, 2, ("bad.py I001 [*] Import block is un-sorted or un-formatted",), ["bad.py:1"]),
    "tsc": (None, 2, ("ts/a.ts TS2322: Type 'string' is not assignable to type 'number'.",), ["ts/a.ts:1"]),
    "tsc-pretty": (None, 2, ("ts/a.ts TS2322: Type 'string' is not assignable to type 'number'.",), ["ts/a.ts:1"]),
    "unittest-v": (1, 2, ("test_error (test_shop.Shop.test_error)",), PYTEST_PLACES),
    "vitest": (
        *(1, 2, ("v/shop.test.mjs > shop > is wrong", "v/shop.test.mjs > shop > throws")),
        ["v/shop.test.mjs:4", "shop.cjs:2", "v/shop.test.mjs:5"],
    ),
    "bats-pretty": (1, 1, ("is wrong: x",), ["a.bats:3"]),
    "biome": (None, 2, ("a.js lint/suspicious/noDoubleEquals", "a.js lint/suspicious/noDebugger"), ["a.js:2"]),
    "cargo-workspace": (
        *(2, 6, ("tests::no_panic", "tests::other_panic", "tests::result", "tests::wrong", "out_wrong")),
        ["a/src/lib.rs:19", "a/src/lib.rs:15"],
    ),
    "ctest": (1, 5, ("wrong", "segv", "with", "slow", "nothere"), []),
    "gotestsum": (3, 4, ("cart TestWrong", "cart TestSub/a_b", "cart TestSub", "cart ExampleTotal"), []),
    "gradle": (
        *(2, 3, ("shop.ShopTest > error", "shop.ShopTest > wrong", "shop.OtherTest > fails")),
        ["shop/ShopTest.java:12", "shop/ShopTest.java:9", "shop/OtherTest.java:7"],
    ),
    "gradle-junit5": (
        *(1, 3, ("ShopTest > wrong()", "A shop that sells > adds(int, int) > [2] 1, 3", "OtherTest > fails()")),
        ["shop/ShopTest.java:9", "shop/ShopTest.java:15", "shop/OtherTest.java:7"],
    ),
    "jest-broken": (2, 1, ("imp/imp.test.js Test suite failed to run",), ["imp/imp.test.js:1"]),
    "minitest-spec": (
        *(1, 3, ("A b#test_0001_does c", "TestShop#test_wrong", "TestShop#test_error")),
        ["test/test_shop.rb:15", "test/test_shop.rb:6", "shop.rb:4"],
    ),
    "nextest": (2, 2, ("shop tests::wrong", "shop::more dies"), ["src/lib.rs:9"]),
    "nodetest-24": (4, 4, ("test/shop.test.js is wrong", "test/shop.test.js throws", "test/shop.test.js sub 1"), []),
    "phpunit-11": (
        *(3, 3, ("CalcTest::testExplodes", "CalcTest::testWrong", 'CalcTest::testData with data set "two" (2)')),
        ["src/Calc.php:4", "tests/CalcTest.php:8", "tests/CalcTest.php:6"],
    ),
    "behave": (1, 2, ("features/a.feature adds wrong", "features/a.feature nothing"), ["features/a.feature:1"]),
    "cucumber": (1, 2, ("Scenario: adds wrong features/a.feature", "Scenario: nothing features/a.feature"), []),
    "green": (1, 5, ("test_u.A.test_explodes", "test_u.A.test_sub (i=0)"), ["u/test_u.py:9", "mod.py:6"]),
    "go-sub": (
        *(2, 2, ("example.org/calc/calc TestWrong/sub", "example.org/calc/other [build failed]")),
        ["other/o.go:3"],
    ),
    "jasmine-pending": (1, 2, ("adder adds wrong", "adder explodes"), ["t/jas/aSpec.js:2", "src.js:2"]),
    "oxlint": (
        *(None, 2, ("eslint(no-unused-vars): Variable 'unused' is declared but never used. "
                    "Unused variables should start with a '_'.",)),
        ["t/lint/a.js:1", "t/lint/a.js:2"],
    ),
    "robot": (1, 2, ("Adds Wrong", "Explodes"), []),
    "robot-dotted": (1, 2, ("Rob.A.Adds Wrong", "Rob.A.Explodes"), []),
    "ruff-format": (None, 1, ("typed.py",), ["typed.py:2"]),
    "ruff-gitlab": (None, 2, ("typed.py I001 I001: Import block is un-sorted or un-formatted",), ["typed.py:1"]),
    "phpunit-verbose": (
        *(3, 4, ("ShopTest::testError", "ShopTest::testWrong", 'ShopTest::testRow with data set "c: d" (false)')),
        ["src/Shop.php:5", "tests/ShopTest.php:10", "tests/ShopTest.php:7"],
    ),
    "rustc-short": (None, 2, ("src/lib.rs error[E0308]: mismatched types: expected `i32`, found `&str`",),
                    ["src/lib.rs:1"]),
    "subtests": (2, 2, ("sub/test_sub.py::T::test_s",) * 2, ["sub/test_sub.py:6"]),
    "surefire-3": (
        *(2, 3, ("ShopTest.adds{int, int}[2]", "ShopTest.error", "shop.ShopTest.wrong")), ["shop/ShopTest.java:9"],
    ),
    "ty": (None, 4, ("error[invalid-explicit-return]: Return type does not match returned value bad.py",),
           ["bad.py:3"]),
    "vitest-broken": (2, 1, ("imp/imp.test.js",), ["imp/imp.test.js:2"]),
}  # fmt: skip
#: The files of the project: what a path in an output means is one of them by its end.
FILES = sorted({place.rpartition(":")[0] for *_, found in EXPECTED.values() for place in found})


def find(path: str) -> str:
    path = path.removeprefix("/project/")
    fitting = [file for file in FILES if file == path] or [
        file for file in FILES if file.endswith(f"/{path}")
    ]
    return fitting[0] if len(fitting) == 1 else ""


@pytest.mark.parametrize("name", EXPECTED)
def test_the_output_of_a_real_program_is_read(name: str) -> None:
    passed, failed, failures, found = EXPECTED[name]
    output = (OUTPUTS / f"{name}.txt").read_text()
    outcome = outcome_of(output)
    assert (outcome.passed, outcome.failed) == (passed, failed)
    assert outcome.failures[: len(failures)] == failures
    assert [f"{place.path}:{place.line}" for place in places(output, find)][: len(found)] == found


def test_every_output_is_tried() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in OUTPUTS.iterdir())


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("....\n4 passed in 0.03s\n", Outcome(4, 0)),
        ("=== 1 failed, 12 passed, 2 skipped in 3.21s (0:00:03) ===\n", Outcome(12, 1)),
        ("ERROR a.py\n1 error in 0.10s\n", Outcome(0, 1, ("a.py",))),
        ("1 failed, 2 passed, 1 error in 0.10s\n", Outcome(2, 2)),
        ("no tests ran in 0.01s\n", Outcome(0, 0)),
        ("2 passed, 1 xfailed, 1 warning in 0.1s\n", Outcome(2, 0)),
        ("FAILED a.py::t[a b - c] - assert 1\n1 failed in 1.0s\n", Outcome(0, 1, ("a.py::t[a b - c]",))),
        ("Ran 3 tests in 0.001s\n\nOK\n", Outcome(3, 0)),
        ("Ran 4 tests in 0.001s\n\nOK (skipped=1, expected failures=1)\n", Outcome(2, 0)),
        ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, unexpected successes=1)\n", Outcome(2, 3)),
        ("test result: ok. 3 passed; 0 failed; 0 ignored;\n\ntest result: ok. 2 passed; 0 failed; 1 ignored;\n",
         Outcome(5, 0)),
        ("     Summary [   0.01s] 3 tests run: 2 passed, 1 failed, 0 skipped\n", Outcome(2, 1)),
        ("Tests:       1 failed, 1 skipped, 7 passed, 9 total\n", Outcome(7, 1)),
        ("Tests:       7 passed, 7 total\n", Outcome(7, 0)),
        ("Tests:       1 passed, 1 total\nTests:       2 failed, 2 total\n", Outcome(1, 2)),
        (" Test Files  1 passed (1)\n      Tests  2 passed (2)\n", Outcome(2, 0)),
        ("ℹ tests 3\nℹ suites 0\nℹ pass 3\nℹ fail 0\n", Outcome(3, 0)),
        ("  3 passing (5ms)\n", Outcome(3, 0)),
        ("  0 passing (5ms)\n  1 failing\n\n  1) a:\n     Error: no\n", Outcome(0, 1, ("a",))),
        ("ok  \texample.com/a\t0.002s\nok  \texample.com/b\t(cached)\n", Outcome(None, 0)),
        ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n", Outcome(1, 1, ("TestB",))),
        ("100% tests passed, 0 tests failed out of 7\n", Outcome(7, 0)),
        ("OK (3 tests, 5 assertions)\n", Outcome(3, 0)),
        ("Tests: 5, Assertions: 4, Failures: 1, Skipped: 2.\n", Outcome(2, 1)),
        ("4 examples, 0 failures, 1 pending\n", Outcome(3, 0)),
        ("4 runs, 4 assertions, 0 failures, 0 errors, 1 skips\n", Outcome(3, 0)),
        ("1 doctest, 3 tests, 0 failures, 1 excluded\n", Outcome(2, 0)),
        ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n", Outcome(4, 0)),
        ("Tests run: 5, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 1 s\nTests run: 5, Failures: 1, Errors: 0\n",
         Outcome(4, 1)),
        ("ShopTest > wrong FAILED\n    at ShopTest.java:4\n\n3 tests completed, 1 failed\n",
         Outcome(2, 1, ("ShopTest > wrong",))),
        ("Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3\n", Outcome(2, 1)),
        ("Total tests: 3\n     Passed: 2\n     Failed: 1\n", Outcome(2, 1)),
        ("\t Executed 3 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds\n", Outcome(2, 1)),
        ("ok | 2 passed | 0 failed (5ms)\n", Outcome(2, 0)),
        (" 2 pass\n 1 fail\n 3 expect() calls\n", Outcome(2, 1)),
        ("TAP version 13\n1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP later\n", Outcome(1, 1, ("b",))),
        ("Success: no issues found in 3 source files\n", Outcome(None, 0)),
        ("Found 1 error in 1 file (checked 3 source files)\n", Outcome(None, 1)),
        ("\x1b[32m✔\x1b[0m a\r\n\x1b[1m3 passed\x1b[0m in 0.1s\r\n", Outcome(3, 0)),
        ("everything is fine\nok then\n", Outcome()),
        ("FAILED a.py::t[a - b] - assert 1\nERROR a.py::s\n", Outcome(None, 2, ("a.py::t[a - b]", "a.py::s"))),
        ("1..1\nnot ok 1 A b\n# tests 2\n# pass 1\n# fail 1\n", Outcome(1, 1, ("A b",))),
        ("a.py:3: \x1b[31merror:\x1b(B\x1b[m Bad  [x]\nFound 1 error in 1 file\n",
         Outcome(None, 1, ("a.py error: Bad [x]",))),
        ("a.py:3:1: error[x-y] Bad\nFound 1 diagnostic\n", Outcome(None, 1, ("a.py error[x-y] Bad",))),
        ("error TS18003: No inputs\n", Outcome(None, 1, ("TS18003: No inputs",))),
        ("a.js: line 1, col 2, Error - Bad (x)\n", Outcome(None, 1, ("a.js Error - Bad (x)",))),
        ("[ERROR] A.java:[4,2] bad\n[ERROR] Failed\n[ERROR] A.java:[4,2] bad\n", Outcome(None, 1, ("A.java bad",))),
        (":compileJava/p/A.java:4: error: bad\n1 error\n", Outcome(None, 1, ("/p/A.java error: bad",))),
        ("e: file:///p/A.kt:4:2 Bad\n", Outcome(None, 1, ("/p/A.kt Bad",))),
        # what a test prints is no summary
        ("Tests: 9 failed\n  ● a › b\n    ● no\n\nTests:       1 failed, 2 total\n", Outcome(1, 1, ("a › b",))),
        ("  9 passing\n# pass 9\n  1 passing (5ms)\n", Outcome(1, 0)),
        # a name that stands there twice failed once
        ("  ● a\n\nSummary of all failing tests\n  ● a\n\nTests:       1 failed, 1 total\n", Outcome(0, 1, ("a",))),
        ("would reformat a.py\n1 file would be reformatted.\n", Outcome(None, 1, ("a.py",))),
        ("/usr/bin/ld: CMakeFiles/t.o: in function `main':\nt.c:(.text+0x5): undefined reference to `f'\n",
         Outcome(None, 1, ("t.c undefined reference to `f'",))),
        ("\x1b[1GTests 1/2\x1b[1G  1 passing (5ms)\n", Outcome(1, 0)),
    ],
)  # fmt: skip
def test_a_summary_is_read(output: str, expected: Outcome) -> None:
    assert outcome_of(output) == expected


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('  File "my folder/a.py", line 3, in total', "my folder/a.py:3"),
        ("    at pay (file:///project/src/a.mjs:3:25)", "src/a.mjs:3"),
        ("   at Shop.Pay() in /project/src/a.cs:line 12", "src/a.cs:12"),
        ("[ERROR] /project/src/A.java:[12,5] cannot find symbol", "src/A.java:12"),
        ("\tat com.shop.inner.A$B.pay(A.kt:7)", "com/shop/inner/A.kt:7"),
        ("PHP Warning:  x in /project/src/a.php on line 4", "src/a.php:4"),
        ("#1 /project/src/a.php(12): total()", "src/a.php:12"),
        ("\tfrom ./lib/a.rb:3:in `pay'", "lib/a.rb:3"),
        ("** (E) a\n    (shop 0.1.0) lib/a.ex:3: Shop.parse/1", "lib/a.ex:3"),
        ("no at lib/a.pl line 3.", "lib/a.pl:3"),
        ("lua: lib/a.lua:3: bad", "lib/a.lua:3"),
        ("bin/a.sh: line 3: x: command not found", "bin/a.sh:3"),
        ("    #0 0x55 in main /project/src/a.c:3:5", "src/a.c:3"),
        ("CMake Error at CMakeLists.txt:5 (message):", "CMakeLists.txt:5"),
        ("Makefile:10: *** missing separator.  Stop.", "Makefile:10"),
        ("src\\a.cpp(12): error C2065", ""),
        ("SyntaxError: /project/src/a.js: Unexpected token (2:0)", "src/a.js:2"),
        ("bin/a.sh: 2: x: not found", "bin/a.sh:2"),
        ("  test/a_test.dart 12:5  main.<fn>", "test/a_test.dart:12"),
        ('  on main.tf line 3, in resource "x":', "main.tf:3"),
        ("thread 'a' panicked at src/a.rs:9:18:", "src/a.rs:9"),
        ("goroutine 1:\n\t/project/src/a.go:3 +0x1d", "src/a.go:3"),
        ("12:30:45 listening on localhost:8080", ""),
    ],
)
def test_a_place_is_read(line: str, place: str) -> None:
    there = {place.rpartition(":")[0]}
    found = places(line, lambda path: path if (path := path.removeprefix("/project/")) in there else "")
    assert [f"{one.path}:{one.line}" for one in found] == ([place] if place else [])


def test_lines_of_an_unknown_program_are_compared_without_places_and_times() -> None:
    before = "step 3\nError: 12 things at 0x7f3a after 3 ms (a.js:3:5)\n"
    after = "step 4\nError: 12 things at 0x7f3b after 9.5 ms (a.js:4:5)\n"
    assert wrong_lines(before) == wrong_lines(after) == ("Error: 12 things at # after # ms (a.js:#:#)",)
    assert wrong_lines("AssertionError: 1\n") != wrong_lines("AssertionError: 3\n")

"""What the words of a request ask for, over a small project."""

from __future__ import annotations

import pytest

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.planning.built_in_planner import MAX_ACTIONS, read_words
from tui_agent.planning.chain import try_patterns
from tui_agent.workspace.index import Index

PATHS = """
.env Makefile README.md app/[slug]/page.tsx docs/configuration.md docs/errors.md docs/rollback/one.sh
docs/rollback/two.sh package.json shop/__init__.py shop/__main__.py shop/cli.py shop/clients/__init__.py
shop/clients/orders.py shop/clients/payments.py shop/errors.py shop/parse_config.py shop/settings.py
src/components/UserCard.tsx src/index.ts src/utils/helper.ts tests/test_clients.py tests/test_orders.py
"""
INDEX = Index([*PATHS.split(), "my notes.txt"])


async def found(request: str, active: str = "") -> list[str]:
    """What the plan for a request loads; a batch and a folder end in a mark of their own."""
    plan = read_words(request, INDEX, active).plan
    names: list[str] = []
    for action in plan.files:
        last = [attempt async for attempt in try_patterns(action, INDEX)][-1]
        names += (
            [path + (" (all)" if action.all else "") for path in last.paths]
            if last.outcome == "hit"
            else ["-"]
        )
    return names + [folder.path + "/" for folder in plan.directories]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        # paths and names
        ("Fix shop/cli.py.", ["shop/cli.py"]),
        ("Fix `shop/cli.py`, then shop/errors.py:12:4", ["shop/cli.py", "shop/errors.py"]),
        ("What does ./shop/settings.py do?", ["shop/settings.py"]),
        ("edit shop\\clients\\orders.py", ["shop/clients/orders.py"]),
        ("see /home/me/checkout/shop/cli.py", ["shop/cli.py"]),
        ("fix app/[slug]/page.tsx (and src/index.ts).", ["app/[slug]/page.tsx", "src/index.ts"]),
        ("change settings.py", ["shop/settings.py"]),
        ("the Makefile and README", ["Makefile", "README.md"]),
        ('open "my notes.txt"', ["my notes.txt"]),
        ("fix the .env file", [".env"]),
        # nearly right: it falls back
        ("fix src/orders_client.py", ["shop/clients/orders.py"]),
        ("shop/api/payments.py is slow", ["shop/clients/payments.py"]),
        ("fix Shop/Settings.py", ["shop/settings.py"]),
        ("src/components/UserCard.vue is too wide", ["src/components/UserCard.tsx"]),
        ("src/utils/helper is unused", ["src/utils/helper.ts"]),
        ("fix nothing/like/this.py", ["-"]),
        ("create shop/cache.py with a cache", ["-"]),
        # names of the program's
        ("rename parseConfig to loadSettings", ["shop/parse_config.py"]),
        ("the user-card is too wide, UserCard should shrink", ["src/components/UserCard.tsx"]),
        ("ParseConfig fails in shop.clients.orders", ["shop/parse_config.py", "shop/clients/orders.py"]),
        ('import a from "@/utils/helper"', ["src/utils/helper.ts"]),
        ("use crate shop::settings please", ["shop/settings.py"]),
        ("payments are charged twice", ["shop/clients/payments.py"]),
        ("`settings` needs a timeout", ["shop/settings.py"]),
        # mentions and tracebacks
        ("look at @shop/cli.py and @docs", ["shop/cli.py", "docs/"]),
        ('see @"my notes.txt" and @UserCard', ["my notes.txt", "src/components/UserCard.tsx"]),
        ("the @property and @dataclass decorators", []),
        (
            '```\nFile "/x/shop/cli.py", line 3, in main\nFile "/usr/lib/asyncio/base.py", line 9\n```',
            ["shop/cli.py"],
        ),
        (
            "TypeError: x\n    at run (/srv/app/src/index.ts:10:5)\n    at node:internal/main:2:3",
            ["src/index.ts"],
        ),
        # many at once
        ("update all scripts in docs/rollback", ["docs/rollback/one.sh (all)", "docs/rollback/two.sh (all)"]),
        (
            "update every file in the rollback folder",
            ["docs/rollback/one.sh (all)", "docs/rollback/two.sh (all)"],
        ),
        ("everything in docs/rollback/", ["docs/rollback/one.sh (all)", "docs/rollback/two.sh (all)"]),
        ("fix every test", ["tests/test_clients.py (all)", "tests/test_orders.py (all)"]),
        ("all tests in tests/ fail", ["tests/test_clients.py (all)", "tests/test_orders.py (all)"]),
        (
            "spell-check all markdown files",
            ["README.md (all)", "docs/configuration.md (all)", "docs/errors.md (all)"],
        ),
        ("reformat docs/*.md", ["docs/configuration.md (all)", "docs/errors.md (all)"]),
        (
            "delete *.sh and **bold** words, a * b",
            ["docs/rollback/one.sh (all)", "docs/rollback/two.sh (all)"],
        ),
        ("**Read all of it:** *never* _guess_; **see *cli.py* first**.", ["shop/cli.py"]),
        ("**Local Review Mode**. Use `gh`", []),
        ("write tests for orders.py", ["tests/test_orders.py", "shop/clients/orders.py"]),
        ("orders.py's tests are slow", ["tests/test_orders.py", "shop/clients/orders.py"]),
        # folders
        ("what's in the docs folder?", ["docs/"]),
        ("list the files in shop/clients", ["shop/clients/"]),
        ("tidy up shop/clients/", ["shop/clients/"]),
        # no names
        ("What does this project do?", []),
        ("How do I run the tests and/or build it with Node.js?", []),
        ("the read/write ratio of client/server TCP/IP is 1/2 since 2024/01/02, e.g. here", []),
        ("read https://example.com/shop/cli.py and write to me@cli.py", []),
        ('The button says "Save changes" and index is an error value in main', []),
        ("call os.path.join(a, b) and asyncio.run", []),
        ("```\nfrom shop import settings, orders\nUserCard()\n```\nWhy?", []),
        ("", []),
    ],
)
async def test_what_a_request_asks_for(request_text: str, expected: list[str]) -> None:
    assert await found(request_text) == expected


def test_a_chain_follows_the_strategy_and_falls_back_where_it_is_seen() -> None:
    plan = read_words("Use the timeout in shop/api/orders.py", INDEX).plan
    assert plan.files == (
        FileAction(
            "shop/api/orders.py",
            (
                "shop/api/orders.py",
                "**/orders.py",
                "shop/**/*orders*.py",
                "**/{orders,Orders}.*",
                "**/*orders*",
            ),
            "the request names it",
        ),
    )
    assert plan.source == "words"


def test_a_batch_is_one_action() -> None:
    plan = read_words("update all scripts in docs/rollback", INDEX).plan
    assert [(action.patterns, action.all) for action in plan.files] == [(("docs/rollback/**",), True)]


def test_this_file_is_the_open_one() -> None:
    plan = read_words("refactor this file", INDEX, active="shop/cli.py").plan
    assert [action.patterns for action in plan.files] == [("shop/cli.py",)]
    assert read_words("refactor this file", INDEX).plan.files == ()


@pytest.mark.parametrize(
    ("request_text", "fallback", "required"),
    [
        ("fix shop/cache.py", "ask_user", True),
        ("create a new file shop/cache.py", "create_new", False),
        ("rename parseConfig", "skip", False),
        ("add tests for settings.py", "create_new", False),
    ],
)
def test_what_happens_when_nothing_is_found(request_text: str, fallback: str, required: bool) -> None:
    action = read_words(request_text, INDEX).plan.files[0]
    assert (action.fallback, action.required) == (fallback, required)


@pytest.mark.parametrize(
    "request_text", ["rename shop/cli.py to b.txt", "Move shop/cli.py into `shop/b.txt`"]
)
def test_nobody_is_asked_which_file_a_new_name_is(request_text: str) -> None:
    action, target = read_words(request_text, INDEX).plan.files
    assert (action.name, target.fallback, target.required) == ("shop/cli.py", "create_new", False)


@pytest.mark.parametrize(
    ("request_text", "certain"),
    [
        ("Fix shop/cli.py and shop/errors.py", True),
        ("Look at @shop/cli.py", True),
        ("update all scripts in docs/rollback", True),
        ("what's in docs/?", True),
        ("change settings.py", True),
        ("Where is UserCard drawn?", True),
        ("the errors in shop/cli.py are about settings", True),
        ("add tests for orders.py", True),
        ("rename shop/cli.py to b.txt", True),
        ("Fix shop/cli.py and wherever it is used", False),
        ("Fix shop/api/orders.py", False),
        ("rename parseConfig", True),
        ("rename parseConfiguration", False),
        ("What does this project do?", False),
        ("payments are charged twice", False),
    ],
)
def test_it_knows_whether_everything_is_named(request_text: str, certain: bool) -> None:
    assert read_words(request_text, INDEX).certain is certain


def test_the_same_file_is_looked_for_once() -> None:
    plan = read_words(
        "shop/cli.py, `shop/cli.py`, @shop/cli.py, ./shop/cli.py and UserCard, userCard, user_card", INDEX
    ).plan
    assert [action.name for action in plan.files] == ["shop/cli.py", "UserCard"]


def test_too_many_names_are_told() -> None:
    many = Index(f"src/file_{number}.py" for number in range(100))
    plan = read_words(" ".join(many.paths), many).plan
    assert len(plan.files) == MAX_ACTIONS
    assert f"the first {MAX_ACTIONS}" in plan.faults[0]


def test_a_very_long_request_is_read_at_its_ends() -> None:
    request = "fix shop/cli.py\n" + "x y z 1 2 3\n" * 100_000 + "and shop/errors.py"
    assert [action.name for action in read_words(request, INDEX).plan.files] == [
        "shop/cli.py",
        "shop/errors.py",
    ]


def test_a_folder_is_a_directory_action() -> None:
    assert read_words("list all files in docs recursively", INDEX).plan.directories == (
        DirectoryAction("docs", True),
    )


@pytest.mark.parametrize(
    "request_text",
    ["[" * 5000, "`" * 999, '"' * 999, "*" * 5000, "a/" * 5000, "\\" * 5000, "@" * 5000, "\0\ud800 x.py"],
    ids=["brackets", "backticks", "quotes", "stars", "folders", "backslashes", "mentions", "controls"],
)
def test_hostile_text_is_only_text(request_text: str) -> None:
    assert len(read_words(request_text, INDEX).plan.files) <= 1

"""Tools whose work the session does: pages, commands and skills, each called without a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.tool_contexts import Bench

from tui_agent.errors import TuiAgentError
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.settings.schema import CommandsSettings, Settings
from tui_agent.store.commands import CommandResult
from tui_agent.tools import fetch_page, run_command, use_skill
from tui_agent.tools.tool import Invocation, SessionCalls, Tool, ToolResult
from tui_agent.web.pages import Page

LONG = "".join(f"{number:09,} " for number in range(4_050))


async def ran(tool: Tool, bench: Bench, *entries: Mapping[str, Any]) -> ToolResult:
    return await tool.run(Invocation("c", tool.name, entries), bench.context, bench.emit)


@pytest.mark.parametrize("tool", [fetch_page.TOOL, run_command.TOOL, use_skill.TOOL])
async def test_a_tool_that_the_session_does_not_have_says_so(tool: Tool) -> None:
    result = await ran(tool, Bench(), {"url": "u", "command": "c", "name": "n"})
    assert not result.ok and result.text.startswith("Error: ")


def pages(root: Path, page: Page, asked: list[tuple[str, bool]]) -> Bench:
    async def read(url: str, again: bool) -> Page:
        asked.append((url, again))
        if "refused" in url:
            raise TuiAgentError("this page is refused", "read another one")
        return page

    (root / ".env").write_text("DB_PASSWORD=quokka-7431-Vermilion\n")
    secrets = KnownSecrets(str(root))
    secrets.look()
    return Bench(calls=SessionCalls(read_page=read), fields={"secrets": secrets})


@pytest.mark.parametrize(
    ("entry", "page", "parts"),
    [
        ({}, Page("u", "Title", "Words", cut=False), ("## WEB PAGE u\nTitle\n\nWords",)),
        ({}, Page("u", "Title", "", cut=False), ("Title\n\n(no text)",)),
        ({}, Page("u", "T", "Words", cut=True), ("Words\n\n(the page is longer than 1 MB",)),
        ({}, Page("u", "T", LONG, cut=True), ("\n\n(500 more characters: read on with from=40000)",)),
        ({"from": 40_000}, Page("u", "T", LONG, cut=False), ("## WEB PAGE u, from 40000", LONG[40_000:])),
    ],
)
async def test_a_page_is_shown_in_parts(
    tmp_path: Path, entry: dict[str, Any], page: Page, parts: tuple[str, ...]
) -> None:
    asked: list[tuple[str, bool]] = []
    result = await ran(fetch_page.TOOL, pages(tmp_path, page, asked), {"url": "https://u.example", **entry})
    assert result.ok and all(part in result.text for part in parts)
    assert result.text.count("more characters") == ("500" in parts[0])
    assert result.text.count("longer than") == ("longer" in parts[0])
    assert asked == [("https://u.example", bool(entry))]
    assert result.amount == f"{len(result.text):,} characters"


async def test_an_address_with_a_secret_is_not_requested_and_an_error_is_the_result(tmp_path: Path) -> None:
    asked: list[tuple[str, bool]] = []
    bench = pages(tmp_path, Page("u", "", "", cut=False), asked)
    result = await ran(fetch_page.TOOL, bench, {"url": "https://u.example/?k=quokka-7431-Vermilion"})
    assert not result.ok and "contains a secret" in result.text and asked == []
    result = await ran(fetch_page.TOOL, bench, {"url": "https://refused.example"})
    assert not result.ok and "this page is refused" in result.text


@pytest.mark.parametrize(
    ("addresses", "hosts"),
    [
        (("https://a.example/x", "https://a.example/y"), ("a.example",)),
        (("https://a.example:443", "https://a.example:8443"), ("a.example", "a.example:8443")),
        (("http://a.example:80", "http://a.example:443"), ("a.example", "a.example:443")),
        (("not an address", "https://[broken"), ("not an address", "https://[broken")),
        (("https://a.example:port",), ("https://a.example:port",)),
    ],
)
def test_an_approval_covers_hosts(addresses: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    call = Invocation("c", "fetch_page", tuple({"url": url} for url in addresses))
    assert fetch_page.hosts(call) == hosts
    assert ", ".join(hosts) in fetch_page.TOOL.preview(call)
    assert all(url in fetch_page.TOOL.preview(call) for url in addresses)


def command(**fields: Any) -> CommandResult:
    first = CommandResult("r", "make", "model", "trial", "overlay", 0, "exit", 1.25, output="done\n")
    return replace(first, **fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "## COMMAND RESULT\nmake\nexit 0, 1.2 s\n\ndone\n"),
        ({"status": 2}, "\nexit 2, 1.2 s\n"),
        ({"how": "memory"}, "\nended: it exceeded its memory limit, 1.2 s\n"),
        ({"cut": 1_234}, "\n1,234 lines are skipped.\n"),
        ({"changed": ("a", "b")}, "\nIt changed, and that was thrown away: a, b\n"),
        ({"left": ("sleep",)}, "\nIt left running, and that was ended: sleep\n"),
        ({"place": "app"}, "\nIt ran in the place app.\n"),
        ({"where": "workspace", "place": "app"}, "\nIt ran in the real folder, without what is proposed"),
        ({"cause": "no network"}, "\nWhy, as it seems: no network\n"),
        ({"report": ("no .env", "no keys")}, "\nIts view: no .env; no keys\n"),
    ],
)
def test_a_result_names_its_end_and_effects(fields: dict[str, Any], text: str) -> None:
    assert text in run_command.section(command(**fields), 1_000)
    said = run_command.section(command(), 1_000)
    assert not any(word in said for word in ("skipped", "changed", "running", "place", "Why", "view"))


def test_a_long_output_counts_all_of_its_skipped_lines() -> None:
    output = "".join(f"line {number}\n" for number in range(1_000))
    shown = run_command.section(command(output=output, cut=10), 100)
    left = 1_010 - sum(line.startswith("line ") for line in shown.splitlines())
    assert f"\n{left:,} lines are skipped.\n" in shown and "line 999" in shown


@pytest.mark.parametrize(
    ("entry", "given"),
    [
        ({}, ("make", 120.0, False, "")),
        ({"timeout": 5}, ("make", 5.0, False, "")),
        ({"timeout": 999}, ("make", 120.0, False, "")),
        ({"background": True, "place": "app"}, ("make", 120.0, True, "app")),
        ({"background": "yes"}, ("make", 120.0, False, "")),
    ],
)
async def test_a_command_runs_within_its_limits(entry: dict[str, Any], given: tuple[object, ...]) -> None:
    ran_with: list[tuple[object, ...]] = []

    async def run(*words: Any) -> CommandResult:
        ran_with.append(words)
        return command(status=len(ran_with) - 1)

    bench = Bench(calls=SessionCalls(run_command=run))
    result = await ran(run_command.TOOL, bench, {"command": "make", **entry})
    assert ran_with == [given] and result.ok
    result = await ran(run_command.TOOL, bench, {"command": "a"}, {"command": "b"})
    assert not result.ok and result.amount == "exit 1, exit 2" and result.details == "done\n\n\ndone\n"


async def test_a_refused_command_is_the_only_result() -> None:
    async def run(*words: Any) -> CommandResult:
        raise TuiAgentError("no shell is installed", "install one")

    result = await ran(run_command.TOOL, Bench(calls=SessionCalls(run_command=run)), {"command": "make"})
    assert not result.ok and "no shell is installed" in result.text


@pytest.mark.parametrize(
    ("isolated", "ask", "places", "verdict", "covers", "remembered"),
    [
        (None, "outside", ("",), "allow", "", "exactly"),
        ("overlay", "outside", ("",), "allow", "overlay", "exactly"),
        ("overlay", "always", ("",), "ask", "overlay", "exactly"),
        ("none", "outside", ("",), "ask", "none", "never"),
        ("landlock", "outside", ("",), "ask", "landlock", "session"),
        ("landlock", "always", ("",), "ask", "landlock", "exactly"),
        ("none", "outside", ("app",), "allow", "", "exactly"),
        ("none", "outside", ("app", ""), "ask", "none", "never"),
    ],
)
async def test_an_approval_depends_on_the_isolation(
    isolated: Any, ask: Any, places: tuple[str, ...], verdict: str, covers: str, remembered: str
) -> None:
    async def isolation() -> Any:
        return isolated, "in a test"

    settings = replace(Settings(), commands=CommandsSettings(ask=ask))
    bench = Bench(settings=settings, calls=SessionCalls(isolation=isolation if isolated else None))
    call = Invocation("c", "run_command", tuple({"command": "x", "place": place} for place in places))
    assert run_command.TOOL.circumstances is not None
    found = await run_command.TOOL.circumstances(call, bench.context)
    assert (found.verdict, found.covers, found.remembered) == (verdict, covers, remembered)
    assert found.words == ("It would run in a test." if covers in ("none", "landlock") else "")


def test_a_preview_shows_everything_that_an_approval_covers() -> None:
    tool = run_command.TOOL
    entry = {"command": "make", "timeout": 5, "background": True, "place": "app"}
    call = Invocation("c", tool.name, (entry, {"command": "ls"}, "broken"))
    assert tool.preview(call) == "make\n  at most 5 s\n  in the background\n  in the place app\nls"
    assert tool.targets(call) == ("make", "ls", "@app make")
    assert tool.shown(call) == "make; ls"


async def test_a_skill_is_read_by_name_and_path() -> None:
    async def read(name: str, path: str) -> str:
        return f"text of {name}/{path}"

    result = await ran(
        use_skill.TOOL,
        Bench(calls=SessionCalls(read_skill=read)),
        {"name": "release"},
        {"name": "release", "path": "a.md"},
    )
    assert result.text == "## SKILL release\ntext of release/\n\n## SKILL release, a.md\ntext of release/a.md"

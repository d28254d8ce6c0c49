"""Skills, commands, hooks and servers that are configured but not used: the first frame and the first request with and
without them; and what a call of a server's tool costs beyond the server's own time."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, paired, ratio, show
from programs import OUR_MARK, TUI_AGENT, home, small_workspace
from support.provider import Answer, Provider
from support.tool_servers import BARE, program
from terminal import Terminal

SKILLS, COMMANDS, HOOKS, SERVERS = 50, 20, 10, 10
PAIRS, CALLS = 7, 50
REPLY = '{"summary": "Seen."}'
EVENTS = ("PreToolUse", "PostToolUse", "Applied", "BeforeApply", "Notification")


def main() -> None:
    with (
        Provider() as provider,
        small_workspace() as workspace,
        home(provider.url) as plain,
        home(provider.url) as full,
        TemporaryDirectory() as person,
    ):
        provider.otherwise = Answer(REPLY)
        for env in (plain, full):
            env["HOME"] = person
        configure(Path(full["TUI_AGENT_HOME"]))
        runs = paired(lambda: run(workspace, plain, provider), lambda: run(workspace, full, provider), PAIRS)
        first, second = ([times[at] for times in one] for one in runs for at in (0,))
        show([ratio("first frame, with against without", first, second, 1.1)])
        first, second = ([times[at] for times in one] for one in runs for at in (1,))
        show([ratio("Enter to the first request, with against without", first, second, 1.1)])
    with TemporaryDirectory() as folder:
        times = asyncio.run(calls(Path(folder)))
    show(
        [
            Figure(
                "a call of a server's tool, the server's own time included",
                statistics.median(times) * 1000,
                10,
                " ms",
                f"of {len(times)}, slowest {max(times) * 1000:.1f} ms",
            )
        ]
    )


def configure(folder: Path) -> None:
    """Skills, commands, hooks and servers in a configuration folder."""
    config = folder / "config"
    for number in range(SKILLS):
        skill = config / f"skills/skill-{number}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            f"---\nname: skill-{number}\ndescription: Task {number}.\n---\nSteps.\n"
        )
    (config / "commands").mkdir()
    for number in range(COMMANDS):
        (config / f"commands/command-{number}.md").write_text("Do $ARGUMENTS.\n")
    lines = []
    for number in range(HOOKS):
        lines += [f"[hooks.hook-{number}]", f'event = "{EVENTS[number % len(EVENTS)]}"', 'command = "true"']
    for number in range(SERVERS):
        lines += [f"[mcp.servers.server-{number}]", 'command = "sleep"', 'args = ["1000"]']
    (config / "settings.toml").write_text("\n".join(lines))


def run(workspace: Path, env: dict[str, str], provider: Provider) -> tuple[float, float]:
    """Seconds to the first frame, and from Enter to the request."""
    before = len(provider.requests)
    with Terminal([*TUI_AGENT, "--set", "protocol=structured", "."], workspace, env) as terminal:
        framed = terminal.wait_for(OUR_MARK) - terminal.started
        terminal.settle(quiet=2)
        terminal.press("hello")
        terminal.read(0.3)
        begin = time.monotonic()
        terminal.press("\r")
        return framed, provider.wait_for(before + 1)[before].at - begin


async def calls(folder: Path) -> list[float]:
    """Seconds of calls of a server that answers at once."""
    import msgspec

    from tui_agent.mcp_servers.client import ServerProcess
    from tui_agent.mcp_servers.servers import ToolServer
    from tui_agent.settings.schema import ServerSettings

    process = ServerProcess(folder, folder)
    server = ToolServer("one", msgspec.convert(program(folder, BARE % ""), ServerSettings))
    try:
        await process.call(server, "plain", {}, 30)
        times = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            await process.call(server, "plain", {}, 30)
            times.append(time.perf_counter() - begin)
        return times
    finally:
        await process.close()


if __name__ == "__main__":
    main()

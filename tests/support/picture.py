"""Draws the README's two pictures: the rehearsal after its first request, and its review alone.

Run by `make picture`; writes screen.svg and docs/review.svg.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZE, REVIEW_SIZE = (160, 44), (100, 30)


async def draw() -> tuple[str, str]:
    from tui_agent.rehearsal import FIRST_REQUEST, copy_project, recording
    from tui_agent.session.opening import Opening, open_session
    from tui_agent.session.session import Session
    from tui_agent.ui.app import WorkspaceApp

    folder = copy_project(Path(tempfile.mkdtemp(prefix="tui-agent-picture-")) / "bookshop")

    async def opened() -> Session:
        return await open_session(
            Opening(folder, replay=recording(), rehearsal=True, interactive=True, draft=FIRST_REQUEST)
        )

    app = WorkspaceApp(opened)
    async with app.run_test(size=SIZE) as pilot:
        while not app.workspace_screen.ready or app.session is None:
            await pilot.pause(0.05)
        await app.session.files.ready()
        await app.session.files.open("shop/clients/orders_v2.py", 20)
        await pilot.press("enter")
        await pilot.pause()
        await app.session.chat.finished()
        while app.session.state.workspace.branch == "":
            await pilot.pause(0.05)
        app.clear_notifications()
        await pilot.pause(0.5)
        whole = local(app.export_screenshot(title="tui-agent", simplify=True))
        await pilot.resize_terminal(*REVIEW_SIZE)
        await pilot.press("f5", "f9")
        await pilot.pause(0.5)
        review = local(app.export_screenshot(title="tui-agent", simplify=True))
        await app.session.close()
        return whole, review


def local(svg: str) -> str:
    """The picture without addresses to fetch fonts from: a reader's own monospace font will do."""
    return re.sub(r",\s*url\([^)]*\) format\([^)]*\)", "", svg)


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"TUI_AGENT_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        os.environ["TUI_AGENT_REPLAY_SPEED"] = "0"
        for target, picture in zip(
            (ROOT / "screen.svg", ROOT / "docs" / "review.svg"), asyncio.run(draw()), strict=True
        ):
            target.write_text(picture, encoding="utf-8")
            sys.stdout.write(f"{target.name} is drawn ({target.stat().st_size // 1024} KiB)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

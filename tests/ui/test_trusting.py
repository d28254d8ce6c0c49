"""What a workspace brings is shown, and used only after the person has said so for exactly that."""

from __future__ import annotations

from pathlib import Path

from support.repositories import git, repository
from support.screens import on_screen

from tui_agent.settings import trust
from tui_agent.settings.folders import user_folders
from tui_agent.ui.dialogs.chooser import MOST
from tui_agent.ui.dialogs.questions import trust_rows


async def test_it_is_said_at_the_start_shown_by_key_and_trusted_by_a_choice(
    tmp_path: Path, home: Path
) -> None:
    work = tmp_path / "work"
    (work / ".tui-agent").mkdir(parents=True)
    (work / ".tui-agent" / "settings.toml").write_text('theme = "light"\n')
    folders = user_folders()
    async with on_screen(work, interactive=True) as it:
        await it.until(
            lambda: any("has its own settings" in one.text for one in it.session.state.notices.items)
        )
        await it.press("ctrl+o", "T")
        await it.shows("look at .tui-agent/settings.toml")
        await it.press("enter")
        assert not trust.is_trusted(work, folders)
        await it.press("ctrl+o", "T")
        await it.shows("Trust exactly these files")
        await it.press("down", "enter")
        await it.until(lambda: trust.is_trusted(work, folders), "the trust")
        await it.shows("Takes effect at the next start")
    async with on_screen(work, interactive=True) as it:
        assert not any("has its own settings" in one.text for one in it.session.state.notices.items)
        assert it.session.loaded.settings.theme == "light"
        await it.press("ctrl+o", "T")
        await it.shows("Revoke the trust")
        await it.press("down", "enter")
        await it.until(lambda: not trust.is_trusted(work, folders), "no trust")


def test_filters_are_shown_with_their_commands(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a.txt": "a\n"})
    git(work, "config", "filter.evil.clean", "sh -c 'touch canary'")
    filters = trust.trust_scope(work)[1]
    words = [row.words.plain for row in trust_rows("not trusted", filters, [f"f{n}" for n in range(500)])]
    assert words[:3] == [
        "Do not trust it",
        "Trust exactly these files",
        "  filter  filter.evil.clean = sh -c 'touch canary'",
    ]
    git(work, "config", f"filter.{'a' * 3000}.clean", "sh -c 'touch canary'")
    long = [row.words.plain for row in trust_rows("not trusted", trust.trust_scope(work)[1], [])][-1]
    assert long.endswith("aaa.clean = sh -c 'touch canary'") and len(long) < 90
    assert len(words) == MOST and words[-1] == "  and 304 more files"
    assert "Trust exactly these files" not in [
        row.words.plain for row in trust_rows("not trusted", filters * 300, [])
    ]


async def test_what_changed_after_it_was_shown_is_not_trusted(tmp_path: Path, home: Path) -> None:
    work = tmp_path / "work"
    (work / ".tui-agent").mkdir(parents=True)
    file = work / ".tui-agent" / "settings.toml"
    file.write_text('theme = "light"\n')
    async with on_screen(work, interactive=True) as it:
        await it.press("ctrl+o", "T")
        await it.shows("Trust exactly these files")
        file.write_text('theme = "high-contrast"\n')
        await it.press("down", "enter")
        await it.shows("Takes effect at the next start")
    assert trust.trust_status(work, user_folders()) == "changed"


async def test_a_filter_that_comes_later_can_be_trusted_too(tmp_path: Path, home: Path) -> None:
    work = repository(tmp_path / "work", {"a.txt": "a\n"})
    trust.trust(work, user_folders())
    git(work, "config", "filter.late.clean", "cat")
    async with on_screen(work, interactive=True) as it:
        await it.press("ctrl+o", "T")
        await it.shows("filter.late.clean = cat")
        await it.press("down", "enter")
        await it.shows("Takes effect at the next start")
    assert trust.trusted_filters(work, user_folders()) == trust.fingerprint(work)

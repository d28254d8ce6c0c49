"""Hooks at both ends of sessions, in the real program on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from support.repositories import repository
from support.terminal_program import Program, running


def test_a_session_that_is_cleared_and_one_that_is_quit_say_so_to_their_hooks(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a.py": "one\n"})
    seen, config = tmp_path / "seen", tmp_path / "home/config"
    config.mkdir(parents=True)
    command = json.dumps(f"cat >> '{seen}'; echo >> '{seen}'")
    events = ("SessionStart", "SessionEnd")
    (config / "settings.toml").write_text(
        "".join(f"[hooks.{event}]\nevent = '{event}'\ncommand = {command}\n" for event in events)
    )

    def said() -> list[tuple[str, str]]:
        lines = seen.read_text().splitlines() if seen.exists() else []
        found = [json.loads(line) for line in lines if line]
        return [(one["hook_event_name"], one.get("source") or one["reason"]) for one in found]

    with running(Program(folder=work, home=tmp_path / "home"), sign="Chat") as it:
        it.until(lambda: said() == [("SessionStart", "startup")], "the first session")
        it.settle()
        it.type(b"/clear\r")
        it.until(lambda: len(said()) == 3, "the second session")
        it.settle()
        it.type(b"\x03")
        it.shows("again to quit")
        it.type(b"\x03")
        assert it.process.wait(30) == 0
    assert said()[1:] == [
        ("SessionEnd", "clear"),
        ("SessionStart", "clear"),
        ("SessionEnd", "prompt_input_exit"),
    ]

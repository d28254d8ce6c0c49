"""The command line as a person uses it."""

from __future__ import annotations

import pytest
from support.command_line import Outcome, run_here


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]):
    """Run `tui-agent WORDS…` in this process."""

    def run_words(*words: str) -> Outcome:
        return run_here(capfd, words)

    return run_words

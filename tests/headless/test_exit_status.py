from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import open_session

from tui_agent import errors
from tui_agent.headless.run import exit_status

FAILURES = {
    errors.BadKey: 3,
    errors.Unreachable: 3,
    errors.TimedOut: 3,
    errors.NoModel: 2,
    errors.ContextTooLong: 1,
    errors.EmptyReply: 1,
    errors.Refused: 1,
    errors.RateLimited: 1,
    errors.LimitReached: 1,
}


@pytest.mark.parametrize(
    ("failure", "status"), FAILURES.items(), ids=lambda value: getattr(value, "__name__", "")
)
async def test_each_failure_of_a_turn_has_its_exit_status(
    tmp_path: Path, failure: type[errors.TuiAgentError], status: int
) -> None:
    answers = [failure("It failed", "do better")] * 3
    async with open_session(tmp_path, answers, services=False) as session:
        session.workspace._indexed.set()
        await session.chat.submit("Hello")
        await session.chat.finished()
        assert session.state.turn.error == "It failed: do better"
        assert exit_status(session.state.turn) == status

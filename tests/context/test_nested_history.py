"""Messages of the history that hold JSON nested however deeply give way like any other."""

from __future__ import annotations

import pytest

from tui_agent.context.budget import emptied
from tui_agent.model.parts import CallPart, TextPart, message_of


def nested(key: str, levels: int) -> str:
    return f'{{"{key}": [{{"path": "a.txt", "content": "x", "more": {"[" * levels}{"]" * levels}}}]}}'


@pytest.mark.parametrize("about", [400, 900, 100_000])
def test_at_any_depth(about: int) -> None:
    """What can just be read may not be written again: that depends on how deep the stack is by itself."""
    for levels in range(about, about + 100):
        spoken = message_of([TextPart(nested("fileChanges", levels))])
        called = message_of([CallPart("c1", "propose_changes", nested("changes", levels))])
        read = {"role": "user", "content": '{"type": "read_files", ' + nested("files", levels)[1:]}
        for message in (spoken, called, read):
            assert emptied(message)["role"] == message["role"]

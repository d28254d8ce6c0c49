"""An agent at the other end of two pipes."""

from __future__ import annotations

import asyncio
import os

import pytest

from tui_agent.errors import SessionError
from tui_agent.outside_agents.acp_client import AcpAgent, load_sdk


async def test_the_last_words_of_an_agent_that_reads_nothing_are_its_reason() -> None:
    """Though the request fails before they have come."""
    pytest.importorskip("acp")
    agent = AcpAgent(await load_sdk())
    from_agent, output = os.pipe()
    source, to_agent = os.pipe()
    os.close(source)
    await agent.connect(from_agent, to_agent)

    def ends() -> None:
        os.write(output, b"Node.js v22 is required\n")
        os.close(output)

    asyncio.get_running_loop().call_later(0.1, ends)
    with pytest.raises(SessionError, match=r"did not start \(Node\.js v22 is required\)"):
        await agent.begin("/work", "")
    await agent.close()

"""The results of parallel calls, in the shapes that providers expect, as litellm makes them of our messages."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree

SHAPES = """
import json, os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt
from litellm.llms.vertex_ai.gemini.transformation import _gemini_convert_messages_with_history
messages = [m for m in json.load(sys.stdin) if m["role"] != "system"]
print(json.dumps({
    "anthropic": anthropic_messages_pt(json.loads(json.dumps(messages)), "claude-sonnet-4-5", "anthropic"),
    "gemini": _gemini_convert_messages_with_history(json.loads(json.dumps(messages))),
}, default=str))
"""


async def test_each_call_has_its_result_in_the_shapes_of_anthropic_and_gemini(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "work", {"a.py": "x = 1\n"})
    change = {"path": "a.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]}
    asked = calls(
        ("search_text", {"pattern": "x"}), ("propose_changes", {"changes": [change]}), ("nothing_such", {})
    )
    async with open_session(root, [asked, reply("Done.")], protocol="tools") as session:
        await session.chat.submit("Look")
        await session.chat.finished()
        sent = [dict(message) for message in model_of(session).requests[1].messages]
    command = [sys.executable, "-c", SHAPES]
    run = partial(subprocess.run, command, input=json.dumps(sent), capture_output=True, text=True, check=True)
    done = await asyncio.to_thread(run)
    shapes = json.loads(done.stdout.splitlines()[-1])
    results = [
        (part["tool_use_id"], str(part["content"]))
        for message in shapes["anthropic"]
        for part in message["content"]
        if isinstance(part, dict) and part.get("type") == "tool_result"
    ]
    assert [call for call, _ in results] == ["call_0", "call_1", "call_2"]
    assert "a.py:1" in results[0][1] and "the person decides" in results[1][1] and "Error" in results[2][1]
    answered = [
        part["function_response"]
        for content in shapes["gemini"]
        for part in content["parts"]
        if "function_response" in part
    ]
    assert [one["name"] for one in answered] == ["search_text", "propose_changes", "nothing_such"]
    assert "a.py:1" in str(answered[0]) and "the person decides" in str(answered[1])

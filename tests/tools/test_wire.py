"""The results of parallel calls, as providers with requests of their own get them."""

from __future__ import annotations

from pathlib import Path

from support.rendering import body
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree


async def test_each_call_has_its_result_in_the_shapes_of_anthropic_and_gemini(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "work", {"a.py": "x = 1\n"})
    change = {"path": "a.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]}
    asked = calls(
        ("search_text", {"pattern": "x"}), ("propose_changes", {"changes": [change]}), ("nothing_such", {})
    )
    async with open_session(root, [asked, reply("Done.")], protocol="tools") as session:
        await session.chat.submit("Look")
        await session.chat.finished()
        sent = model_of(session).requests[1].messages
    blocks = [
        block
        for message in body("anthropic/claude-sonnet-4-5", *sent)["messages"]
        for block in message["content"]
    ]
    made = [(block["id"], block["name"]) for block in blocks if block["type"] == "tool_use"]
    results = [(block["tool_use_id"], block["content"]) for block in blocks if block["type"] == "tool_result"]
    names = ["search_text", "propose_changes", "nothing_such"]
    assert made == list(zip(["call_0", "call_1", "call_2"], names, strict=True))
    assert [call for call, _ in results] == ["call_0", "call_1", "call_2"]
    assert "a.py:1" in results[0][1] and "the person decides" in results[1][1] and "Error" in results[2][1]
    parts = [
        part for turn in body("gemini/gemini-3-pro-preview", *sent)["contents"] for part in turn["parts"]
    ]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == names
    answered = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert [one["name"] for one in answered] == names
    assert "a.py:1" in str(answered[0]) and "the person decides" in str(answered[1])

"""`tui-agent run` with a planner model of its own, through a provider on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.openai_wire import Answer, ToolCall
from support.program import json_lines, of_type, run
from support.provider import Provider
from support.repositories import repository

from tui_agent.model.worker import count_tokens


def test_the_planner_is_another_model_and_its_request_is_told(tmp_path: Path) -> None:
    work = repository(tmp_path, {"src/core/api_client.py": "def fetch(): ...\n", "README.md": "# Sample\n"})
    plan = {"actions": [{"type": "file", "name": "Client", "patterns": ["src/apiClient.py", "**/*lient*"]}]}
    with Provider() as provider:
        provider.answer(json.dumps(plan), Answer('{"summary": "Seen."}'))
        done = run(
            "run", "--json", "--model", "openai/test-model", "--planner-model", "openai/small-model",
            "--protocol", "structured", "Make the calls more robust", folder=work, environment=provider.environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        lines = json_lines(done)
        assert [request.body["model"] for request in provider.requests] == ["small-model", "test-model"]
        assert "def fetch" in provider.requests[1].last_text
    assert [line["pass"] for line in of_type(lines, "request")] == ["plan", "main"]
    (planned,) = of_type(lines, "plan")
    assert planned["source"] == "model"
    assert planned["actions"][0]["patterns"] == ["src/apiClient.py", "**/*lient*"]
    assert [attempt["outcome"] for attempt in of_type(lines, "attempt")] == ["miss", "hit"]
    assert lines[-1]["usage"]["input"] == 200


def test_the_models_chain_is_tried_as_it_wrote_it_and_ours_comes_after(tmp_path: Path) -> None:
    files = {"src/core/api_client.py": "def fetch(): ...\n", "src/responseSchema.ts": "schema\n"}
    files |= {f"many/{number:02}.py": "" for number in range(31)}
    work = repository(tmp_path, files)
    wanted = {
        "Client": ["a/apiClient.py", "b/none.py", "c/none.py", "d/none.py", "e/none.py"],
        "Schema": ["**/*response*schema*.ts"],
        "Many": ["many/*.py"],
    }
    actions = [{"type": "file", "name": name, "patterns": patterns} for name, patterns in wanted.items()]
    actions[0]["fallbackAction"] = "explode"
    with Provider() as provider:
        provider.answer(json.dumps({"actions": actions}), Answer('{"summary": "Seen."}'))
        done = run(
            "run", "--json", "--model", "openai/test-model", "--planner-model", "openai/small-model",
            "--protocol", "structured", "Make the calls more robust", folder=work, environment=provider.environment,
        )  # fmt: skip
        told = provider.requests[1].last_text
    lines = json_lines(done)
    attempts = [tuple(line[k] for k in ("action", "by", "index", "total", "outcome", "pattern"))
                for line in of_type(lines, "attempt")]  # fmt: skip
    assert attempts == [
        *[("Client", "model", n, 5, "miss", text) for n, text in enumerate(wanted["Client"], 1)],
        ("Client", "program", 1, 1, "hit", "src/core/api_client.py"),
        ("Schema", "model", 1, 1, "hit", "**/*response*schema*.ts"),
        ("Many", "model", 1, 1, "too_broad", "many/*.py"),
    ]
    assert {line["path"] for line in of_type(lines, "file_loaded")} == set(files) - {
        path for path in files if path.startswith("many/")
    }
    notices = " ".join(line["text"] for line in of_type(lines, "notice"))
    assert "31 files match; narrow the pattern" in notices and "31 files match; narrow the pattern" in told
    assert "not found" not in told
    assert "unknown fallbackAction 'explode'" in notices and "different letter case" in notices


@pytest.mark.parametrize("protocol", ["structured", "tools"])
def test_a_batch_that_overshoots_is_counted_and_what_is_left_out_is_named(
    tmp_path: Path, protocol: str
) -> None:
    names = [f"notes/{number:03}.md" for number in range(300)]
    work = repository(tmp_path, {name: f"# Note {name}\n{'alpha beta ' * 30}\n" for name in names})
    change = {"path": "new.md", "content": "made\n"}
    calls = (ToolCall("propose_changes", json.dumps({"changes": [change]})),)
    answer = (
        Answer(json.dumps({"summary": "Done.", "fileChanges": [change]}))
        if protocol == "structured"
        else Answer("Done.", calls=calls)
    )
    with Provider() as provider:
        provider.answer(answer)
        done = run(
            "run", "--json", "--apply", "all", "--model", "openai/test-model", "--planner-model", "none",
            "--set", "context.window=32000", "--set", "bundling.enabled=false", "--protocol", protocol,
            "Sum up all files in notes/", folder=work, environment=provider.environment,
        )  # fmt: skip
        (request,) = provider.requests
    lines = json_lines(done)
    assert done.returncode == 1, done.stderr
    assert (work / "new.md").read_text() == "made\n"
    (tokens,) = count_tokens("openai/gpt-4o", [json.dumps(request.body, ensure_ascii=False)]).counts
    assert 14_000 < tokens < 32_000
    (left,) = of_type(lines, "left_out")
    loaded = [line["path"] for line in of_type(lines, "file_loaded")]
    assert left["reason"] == "room" and sorted([*left["paths"], *loaded]) == names
    sent = json.dumps(request.body)
    assert all(f"# Note {name}" in sent for name in loaded) and left["paths"][0] in sent
    assert any(f"{len(left['paths'])} of the 300 files" in line["text"] for line in of_type(lines, "notice"))

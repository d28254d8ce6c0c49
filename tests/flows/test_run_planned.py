"""`tui-agent run` with a planner model of its own, through a provider on loopback."""

from __future__ import annotations

import json
from pathlib import Path

from support.openai_wire import Answer
from support.program import json_lines, of_type, run
from support.provider import Provider
from support.repositories import repository


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
    assert planned["actions"][0]["patterns"] == ["src/apiClient.py", "src/core/api_client.py", "**/*lient*"]
    assert [attempt["outcome"] for attempt in of_type(lines, "attempt")] == ["miss", "hit"]
    assert lines[-1]["usage"]["input"] == 200

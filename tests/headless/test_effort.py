"""Effort without a screen: a level that the model lacks is said, and the tokens of thinking are told."""

from __future__ import annotations

from pathlib import Path

from support.program import json_lines, of_type, run
from support.provider import Answer, Provider

ANSWER = Answer('{"summary": "Done."}', usage=(100, 40, 0), thinking=30)
O3 = ("--model", "openai/o3", "--set", "protocol=structured")


def test_json_lines_name_the_level_and_count_the_thinking(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.answer(ANSWER)
        done = run(
            *("run", "--json", *O3, "--set", "effort=max", "Hello"),
            folder=tmp_path,
            environment=provider.environment,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        lines = json_lines(done)
        assert of_type(lines, "notice") == [
            {"type": "notice", "level": "info", "text": "openai/o3: max is high"}
        ]
        assert provider.requests[-1].body["reasoning_effort"] == "high"
    usage = lines[-1]["usage"]
    assert usage.keys() == {"input", "output", "cached", "cost", "thinking"}
    assert (usage["output"], usage["thinking"]) == (40, 30)


def test_words_name_them_too(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.answer(ANSWER, Answer('{"summary": "Done."}'))
        done = run(
            *("run", *O3, "--set", "effort=none", "Hello"), folder=tmp_path, environment=provider.environment
        )
        assert "info: openai/o3 has no effort none: low is used instead\n" in done.stderr
        assert "100 tokens in, 40 out (30 of thinking) · $" in done.stderr
        done = run("run", *O3, "Hello", folder=tmp_path, environment=provider.environment)
        assert "info:" not in done.stderr and "100 tokens in, 10 out · $" in done.stderr

"""`tui-agent run` changes a real repository through a provider on loopback, in both dialects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.openai_wire import Answer, ToolCall
from support.program import json_lines, of_type, run
from support.provider import Provider, Request
from support.recordings import recorded
from support.repositories import git, repository

from tui_agent.model.client import EndChunk, TextChunk

SOURCE = "def fetch(url):\n    return get(url)\n"
EDIT = {
    "path": "src/api.py",
    "todoIndex": 0,
    "edits": [{"search": "get(url)", "replace": "get(url, timeout=5)"}],
}
TODOS = [{"text": "Add a timeout"}]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "a repository"
    folder.mkdir()
    return repository(folder, {"src/api.py": SOURCE, "README.md": "# Sample\n"})


def answers(protocol: str) -> list[Answer]:
    """The model asks for the file, then changes it."""
    actions = [{"type": "file", "name": "API", "patterns": ["lib/api.py", "**/api.py"]}]
    if protocol == "structured":
        asks = {"summary": "Needs the file.", "fileRequests": actions}
        does = {"summary": "Adds a timeout.", "todos": TODOS, "fileChanges": [EDIT]}
        return [Answer(json.dumps(asks)), Answer(json.dumps(does))]
    return [
        Answer(calls=(ToolCall("read_files", {"actions": actions}),)),
        Answer(
            "Adds a timeout.",
            calls=(
                ToolCall("set_todos", {"todos": TODOS}),
                ToolCall("propose_changes", {"changes": [EDIT]}, "call_x"),
            ),
        ),
    ]


@pytest.mark.parametrize("protocol", ["structured", "tools"])
def test_a_turn_changes_the_repository(work: Path, protocol: str) -> None:
    with Provider() as provider:
        provider.answer(*answers(protocol))
        done = run(
            "run", "--json", "--apply", "all", "--model", "openai/test-model", "--protocol", protocol,
            "Add a timeout to the call", folder=work, environment=provider.environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        lines = json_lines(done)
        assert [lines[0]["type"], lines[-1]["type"]] == ["session", "finished"]
        assert lines[0]["protocol"] == protocol and lines[0]["model"] == "openai/test-model"
        assert [attempt["outcome"] for attempt in of_type(lines, "attempt")] == ["miss", "hit"]
        assert of_type(lines, "file_loaded")[0]["path"] == "src/api.py"
        requests = of_type(lines, "request")
        assert [(line["reset"], line["prefix_share"]) for line in requests] == [(True, 0.0), (False, 1.0)]
        assert of_type(lines, "response")[-1]["changes"] == ["c1.1"]
        assert [change["state"] for change in of_type(lines, "change")] == ["pending", "applied"]
        assert lines[-1]["ok"] and lines[-1]["usage"]["input"] == 200
    assert (work / "src/api.py").read_text() == SOURCE.replace("get(url)", "get(url, timeout=5)")
    assert git(work, "status", "--porcelain") == " M src/api.py\n"


def test_without_apply_nothing_is_written_and_the_decision_comes_later(work: Path, tmp_path: Path) -> None:
    ask = "Add a timeout in src/api.py"
    replay = recorded(tmp_path / "recording.jsonl", (ask, answers("structured")[1].text))
    done = run("run", "--json", "--replay", str(replay), ask, folder=work)
    assert done.returncode == 0, done.stderr
    session = json_lines(done)[0]["id"]
    assert (work / "src/api.py").read_text() == SOURCE
    applied = run("apply", "--session", session, folder=work)
    assert (applied.returncode, applied.stdout) == (0, "c1.1 applied src/api.py\n"), applied.stderr
    assert "timeout=5" in (work / "src/api.py").read_text()
    assert run("undo", "--session", "last", folder=work).returncode == 0
    assert (work / "src/api.py").read_text() == SOURCE
    assert run("redo", "--session", session, folder=work).returncode == 0
    assert "timeout=5" in (work / "src/api.py").read_text()


def test_a_refused_key_is_status_3_and_a_sentence_without_the_key(work: Path) -> None:
    with Provider() as provider:
        provider.otherwise = Answer(status=401, message="Incorrect API key provided: sk-secret")
        words = ("run", "--json", "--model", "openai/test-model", "Hello")
        done = run(*words, folder=work, environment=provider.environment)
    assert done.returncode == 3, done.stdout + done.stderr
    last = json_lines(done)[-1]
    assert not last["ok"] and "OPENAI_API_KEY" in last["error"], last
    assert "sk-secret" not in done.stdout + done.stderr


def test_a_reply_that_was_cut_keeps_its_complete_changes(work: Path, tmp_path: Path) -> None:
    changes = [EDIT | {"todoIndex": None}, {"path": "b.py", "content": "x" * 200}]
    whole = json.dumps({"summary": "Two.", "fileChanges": changes})
    cut = whole[: whole.index('"content"') + 40]
    replay = recorded(tmp_path / "recording.jsonl", ("Change src/api.py", (TextChunk(cut), EndChunk("cut"))))
    done = run("run", "--json", "--replay", str(replay), "Change src/api.py", folder=work)
    lines = json_lines(done)
    assert done.returncode == 0, done.stdout
    assert of_type(lines, "response")[0]["cut"] is True
    assert [change["path"] for change in of_type(lines, "change")] == ["src/api.py"]
    assert any("cut off" in notice["text"] for notice in of_type(lines, "notice"))


def test_no_model_is_a_clear_sentence_and_status_2(work: Path) -> None:
    done = run("run", "Hello", folder=work)
    assert done.returncode == 2
    assert "No model is configured" in done.stderr and "Traceback" not in done.stderr


def test_words_are_for_people_and_leave_the_terminal_alone(work: Path, tmp_path: Path) -> None:
    answer = json.dumps({"summary": "Done \x1b[31mred", "message": "[bold]as it is[/]"})
    replay = recorded(tmp_path / "recording.jsonl", ("Hello", answer))
    done = run("run", "--replay", str(replay), "Hello", folder=work)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "[bold]as it is[/]" in done.stdout


def test_a_session_goes_on_where_it_was(work: Path, tmp_path: Path) -> None:
    asks = ("First question", "Second question")
    lines = []
    for ask, session in zip(asks, ((), ("--session", "last")), strict=True):
        replay = recorded(tmp_path / f"{ask}.jsonl", (ask, '{"summary": "One."}'))
        done = run("run", "--json", "--replay", str(replay), *session, ask, folder=work)
        assert done.returncode == 0, done.stderr
        lines.append(json_lines(done))
    first, second = lines
    assert second[0]["id"] == first[0]["id"] and second[0]["turn"] == 2
    requests = [of_type(told, "request")[0] for told in lines]
    assert [(line["reset"], line["prefix_share"]) for line in requests] == [(True, 0.0), (False, 1.0)]


def test_a_file_beyond_a_window_that_a_refusal_names_is_shown_in_part(work: Path) -> None:
    """The refusal also corrects how tokens are counted, which costs counted before do not know."""
    (work / "long.py").write_text("".join(f"def n{number}(): return {number}\n" for number in range(1_500)))
    words = (
        "This model's maximum context length is 9000 tokens. However, your messages resulted in 24000 tokens."
    )
    with Provider() as provider:
        provider.answer(Answer(status=400, message=words, code="context_length_exceeded"), "Seen.")
        done = run(
            "run", "--json", "--model", "openai/test-model", "Explain n700 in long.py",
            folder=work, environment=provider.environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        assert "700: def n699" in provider.requests[-1].last_text
    lines = json_lines(done)
    assert not of_type(lines, "left_out")
    (said,) = [line["text"] for line in of_type(lines, "notice") if "long.py" in line["text"]]
    assert said.startswith("long.py: the model sees lines 1-12, ")


def test_a_summary_that_fails_is_asked_for_twice_and_most_messages_are_kept(work: Path) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Answer:
        said = str(request.body["messages"])
        asked.append("summary" if "You summarise the older part" in said else said)
        return Answer(status=500) if asked[-1] == "summary" else Answer("word " * 250, usage=None)

    with Provider() as provider:
        provider.otherwise = answer
        session: tuple[str, ...] = ()
        for turn in range(30):
            done = run(
                *("run", "--json", "--model", "openai/test-model", "--set", "context.window=8000", *session),
                f"Mark {turn:02}. " + "please " * 120,
                folder=work,
                environment=provider.environment,
            )
            assert done.returncode == 0, done.stderr + done.stdout
            session = ("--session", json_lines(done)[0]["id"])
            if "summary" in asked:
                break
    assert asked.count("summary") == 2, "with one retry, and without a look for the cause"
    kept = [number for number in range(turn) if f"Mark {number:02}." in asked[-1]]
    assert kept[-1] == turn - 1 and 0.65 < len(kept) / turn < 0.85, (kept, turn)


def test_an_overloaded_model_gives_way_to_its_fallback(work: Path) -> None:
    busy = Answer(status=429, message="Overloaded", retry_after=9999)
    words = (
        *("run", "--json", "--model", "openai/test-model", "--planner-model", "none"),
        *("--set", 'models.fallbacks=["openai/other-model", "anthropic/test-model"]'),
        *("--protocol", "structured", "Hello"),
    )
    with Provider() as provider:
        environment = {**provider.environment, "ANTHROPIC_API_KEY": "test"}
        provider.answer(busy, busy, Answer('{"summary": "Here."}'))
        done = run(*words, folder=work, environment=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert [r.body["model"] for r in provider.requests] == ["test-model", "other-model", "test-model"]
        assert len({r.path for r in provider.requests}) == 2  # the last one over Anthropic's wire
        lines = json_lines(done)
        assert of_type(lines, "response")[0]["summary"] == "Here."
        notices = [line["text"] for line in of_type(lines, "notice")]
        assert sum("is used instead" in text for text in notices) == 2
        assert [line["reset"] for line in of_type(lines, "request")] == [True, True, True]
        provider.otherwise = busy
        done = run(*words, folder=work, environment=environment)
        assert done.returncode == 1 and "openai/test-model" in json_lines(done)[-1]["error"]


def test_filters_of_a_repository_run_with_trust_only_and_the_person_is_told(
    work: Path, tmp_path: Path
) -> None:
    (work / ".gitattributes").write_text("*.py filter=evil\n")
    git(work, "config", "filter.evil.clean", f"touch {tmp_path}/canary; cat")
    edit = {"summary": "Changed.", "fileChanges": [{**EDIT, "edits": EDIT["edits"]}]}
    replay = recorded(tmp_path / "recording.jsonl", ("Change src/api.py", json.dumps(edit)))
    words = ("run", "--apply", "all", "--replay", str(replay), "Change src/api.py")
    done = run(*words, folder=work)
    assert done.returncode == 0 and "filter evil did not run" in done.stdout + done.stderr
    assert not (tmp_path / "canary").exists()
    (work / "src/api.py").write_text(SOURCE)
    done = run(*words, "--trust", folder=work)
    assert done.returncode == 0 and "did not run" not in done.stdout + done.stderr
    assert (tmp_path / "canary").exists()

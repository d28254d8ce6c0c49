"""The recording: what the scenes say, in the form that replays, at a speed that can be read."""

from __future__ import annotations

import json
from typing import Any

from support.rehearsal_recording import PARTS, chunks, lines
from support.rehearsal_scenes import REPAIRS, SCENES, SECOND_REQUEST, SLOW_SERVICE, TIMEOUTS, Scene

from tui_agent.rehearsal import FIRST_REQUEST, FOLDER, recording


def exchanges() -> list[dict[str, Any]]:
    return [json.loads(line) for line in recording().read_text(encoding="utf-8").splitlines()][1:]


def test_the_file_is_what_the_scenes_give() -> None:
    given = "".join(lines())
    assert recording().read_text(encoding="utf-8") == given, (
        "run `cd tests && python -m support.rehearsal_recording`"
    )


def test_the_header_says_what_can_be_asked() -> None:
    header = json.loads(recording().read_text(encoding="utf-8").splitlines()[0])
    assert header["requests"][:2] == [FIRST_REQUEST, SECOND_REQUEST]
    assert header["requests"] == [scene.request for scene in SCENES]
    assert header["rehearsal"] is True
    asked = {
        purpose: [x["ask"] for x in exchanges() if x["pass"] == purpose] for purpose in ("main", "subtask")
    }
    repairs = [scene.request for scene in REPAIRS]
    assert asked == {"main": [*header["requests"], *repairs], "subtask": [part.request for part in PARTS]}


def test_the_pieces_make_up_the_answer_and_end_properly() -> None:
    for scene, exchange in zip((*SCENES, *REPAIRS, *PARTS), exchanges(), strict=True):
        *pieces, usage, end = [chunk for _, chunk in exchange["chunks"]]
        text = "".join(piece.get("text", "") for piece in pieces)
        match scene.form:
            case "object":
                assert json.loads(text) == scene.answer
            case "prose":
                assert text == scene.answer["message"] and [*scene.answer] == ["message"]
            case "calls":
                made = [next(iter(json.loads(piece["arguments"]).values())) for piece in pieces]
                assert made == [*scene.answer.values()] and not text
        ended = "tool_calls" if scene.form == "calls" else "stop"
        assert (usage["type"], end["type"], end["reason"]) == ("usage", "end", ended)


def test_a_scene_takes_a_few_seconds_and_no_piece_is_long() -> None:
    def seconds(scene: Scene) -> float:
        return sum(pause for pause, _ in chunks(scene))

    assert all(3.5 <= seconds(scene) <= 8 for scene in SCENES)
    read = [piece for scene in SCENES for pause, piece in chunks(scene) if pause >= 0.05]
    assert max(len(getattr(piece, "text", "")) for piece in read) < 60


def test_what_is_searched_for_stands_once_in_the_bundled_file() -> None:
    for change in TIMEOUTS.answer["fileChanges"]:
        text = (FOLDER / "project" / change["path"]).read_text(encoding="utf-8")
        assert [text.count(edit["search"]) for edit in change["edits"]] == [1] * len(change["edits"])


def test_each_todo_is_tied_to_a_change() -> None:
    tied = {change["todoIndex"] for change in TIMEOUTS.answer["fileChanges"]}
    assert tied == set(range(len(TIMEOUTS.answer["todos"])))


def test_the_second_request_is_offered_and_changes_nothing() -> None:
    assert [step["inputText"] for step in TIMEOUTS.answer["nextSteps"]] == [SECOND_REQUEST]
    assert "fileChanges" not in SLOW_SERVICE.answer
    assert "```python" in SLOW_SERVICE.answer["message"]

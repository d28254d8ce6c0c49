"""Writes `recording.jsonl` from the scenes: `python -m tui_agent.rehearsal.write`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import cycle, islice

import msgspec

from tui_agent.model.client import CallChunk, Chunk, EndChunk, TextChunk, UsageChunk
from tui_agent.rehearsal import recording
from tui_agent.rehearsal.checked import REPAIRS
from tui_agent.rehearsal.parts import PARTS
from tui_agent.rehearsal.requests import Scene
from tui_agent.rehearsal.scenes import SCENES
from tui_agent.tools.registry import switched_on

#: Seconds before the first chunk, long enough to show the waiting indicator.
FIRST_WAIT = 0.5
#: Seconds before each call of an answer without text.
CALL_PAUSE = 1.3
#: Words per chunk and seconds between chunks of text shown while streaming: about 100 characters per second.
READ_WORDS, READ_PAUSES = (1, 2, 1, 1, 2), (0.06, 0.08, 0.05, 0.06)
#: The same for the rest of the answer, which is not shown while streaming.
REST_WORDS, REST_PAUSES = (4, 3), (0.02,)

Timed = tuple[float, Chunk]


def lines() -> Iterator[str]:
    """The recording as JSON lines: a header, then one exchange per scene and sub-task."""
    yield _line(
        {
            "type": "recording",
            "version": 1,
            "model": "recorded",
            "protocol": "structured",
            "window": 200_000,
            "rehearsal": True,
            "requests": [scene.request for scene in SCENES],
        }
    )
    for purpose, scenes in (("main", (*SCENES, *REPAIRS)), ("subtask", PARTS)):
        for scene in scenes:
            said = list(chunks(scene))
            yield _line({"type": "exchange", "pass": purpose, "ask": scene.request, "chunks": said})


def chunks(scene: Scene) -> Iterator[Timed]:
    """The streamed chunks of a scene, each with its delay in seconds."""
    if scene.form == "calls":
        # The lists of an answer as function calls
        functions = {function.key: function for function in (tool.function for tool in switched_on(()))}
        for number, (key, entries) in enumerate(scene.answer.items()):
            function = functions[key]
            arguments = json.dumps({function.parameter: entries}, ensure_ascii=False)
            yield CALL_PAUSE, CallChunk(number, f"call_{number}", function.name, arguments)
        yield 0, UsageChunk(scene.tokens_in, scene.tokens_out, scene.cached, 0.0)
        yield 0, EndChunk(reason="tool_calls")
        return
    if scene.form == "prose":
        text = scene.answer["message"]
        read = len(text)
    else:
        text = json.dumps(scene.answer, ensure_ascii=False)
        said = {key: scene.answer[key] for key in ("summary", "message")}
        read = len(json.dumps(said, ensure_ascii=False)) - 1
    pieces = [*_pieces(text[:read], READ_WORDS, READ_PAUSES), *_pieces(text[read:], REST_WORDS, REST_PAUSES)]
    for number, (pause, piece) in enumerate(pieces):
        yield (FIRST_WAIT if number == 0 else pause), TextChunk(piece)
    yield 0, UsageChunk(scene.tokens_in, scene.tokens_out, scene.cached, 0.0)
    yield 0, EndChunk(reason="stop")


def _pieces(text: str, sizes: tuple[int, ...], pauses: tuple[float, ...]) -> Iterator[tuple[float, str]]:
    words = iter(re.findall(r"\s*\S+", text))
    for size, pause in zip(cycle(sizes), cycle(pauses), strict=False):
        piece = "".join(islice(words, size))
        if not piece:
            return
        yield pause, piece


def _line(value: object) -> str:
    return msgspec.json.encode(value).decode() + "\n"


if __name__ == "__main__":
    recording().write_text("".join(lines()), encoding="utf-8", newline="\n")

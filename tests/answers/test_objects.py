"""A long object is decoded in pieces, with the result of decoding it at once."""

from __future__ import annotations

import json
import random

from tui_agent.answers.objects import find


def test_a_long_object_is_the_same_as_decoded_at_once() -> None:
    chance = random.Random(5)
    words = ["a", "}, {", "]},", '"},', "\\", "é", "line\nline", "{[", ""]

    def value(depth: int) -> object:
        match chance.randrange(6 if depth else 4):
            case 0 | 1:
                return "".join(chance.choices(words, k=chance.randrange(6)))
            case 2 | 3:
                return chance.choice([1, -2.5e3, True, None])
            case 4:
                return [value(depth - 1) for _ in range(chance.randrange(5))]
            case _:
                return {chance.choice(words): value(depth - 1) for _ in range(chance.randrange(4))}

    for separators in ((", ", ": "), (" ,\n ", " : ")):
        entries = [{"path": value(0), "edits": [value(3)] * 3, "other": value(2)} for _ in range(3_000)]
        text = json.dumps({"summary": "S", "fileChanges": entries}, separators=separators)
        assert len(text) > 300_000
        assert find(text, ["summary"]).value == json.loads(text)

"""Answers of five megabytes in the worst forms, read and placed, and for how long that holds the interpreter."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable
from functools import partial

from figures import Figure, show
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest
from tui_agent.edits.proposals import propose
from tui_agent.model.client import CallChunk

SIZE = 5_000_000
PIECE = 4_000


def much(text: str) -> str:
    return text * (SIZE // len(text))


def entries(**form: object) -> str:
    return json.dumps({"summary": "S", "fileChanges": [{"path": "a.py", **form}]})


EDIT = {"search": "old_name", "replace": "new_name"}
BLOCK = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
HUNK = "@@ -10,3 +10,3 @@ def f(x):\n     value = compute(x)\n-    return value\n+    return value + 1\n \n"
FORMS = {
    "blank lines": lambda: much("\n"),
    "blanks": lambda: much(" "),
    "backticks": lambda: much("`"),
    "bullets": lambda: much("- a\n"),
    "prose": lambda: much("Some words of a line as long as those that models write.\n"),
    "fences": lambda: much("```\n"),
    "fences never closed": lambda: much("```python a.py\nx\n"),
    "a file in a fence": lambda: "```python a.py\n" + much("value = compute(1, 2, 3)\n") + "```\n",
    "a file in a list": lambda: "- ```python a.py\n" + much("  value = compute(1, 2, 3)\n") + "  ```\n",
    "search blocks": lambda: "a.py\n```\n" + much(BLOCK) + "```\n",
    "search blocks never closed": lambda: "a.py\n```\n" + much(BLOCK[:23]),
    "dividers": lambda: "a.py\n```\n<<<<<<< SEARCH\n" + much("=======\n"),
    "a diff": lambda: "```diff\n--- a/x\n+++ b/x\n" + much(HUNK) + "```\n",
    "a diff of one hunk": lambda: (
        "--- a/x\n+++ b/x\n@@ -1,9 +1,999999 @@\n" + much("+    value = compute(1)\n")
    ),
    "heads of diffs": lambda: much("--- a/x\n+++ b/x\n@@ -1 +1 @@\n"),
    "envelopes": lambda: much("*** Begin Patch\n*** Add File: a\n+x\n"),
    "tags": lambda: much('<file path="a.py">\n'),
    "content in JSON": lambda: entries(content=much('x = "1"\n')[: SIZE * 2 // 3]),
    "a diff in JSON": lambda: entries(diff="@@ -1 +1 @@\n" + much("+    value = compute(1)\n")),
    "edits in JSON": lambda: entries(edits=[EDIT] * (SIZE // 50)),
    "entries in JSON": lambda: json.dumps(
        {"summary": "S", "fileChanges": [{"path": "a.py", "edits": [EDIT]}] * (SIZE // 80)}
    ),
    "broken JSON": lambda: '{"summary": "S", "fileChanges": [' + much('{"path": "a", "content": "f("x")"},'),
    "open brackets": lambda: much("{"),
    "open brackets, a line each": lambda: much("{\n"),
    "JSON values in fences": lambda: much('```json\n{"a": 1}\n```\n'),
    "JSON values among words": lambda: much('Words here.\n```json\n{"name": "x", "b": [1, 2]}\n```\n'),
    "replies in fences": lambda: much('```json\n{"summary": "x", "todos": []}\n```\n'),
    "calls as text": lambda: much('<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>\n'),
    "thoughts": lambda: much("<think>a</think>\n"),
    "thoughts among words": lambda: much("x\n<think>a</think>\n"),
    "opening signs": lambda: much("<"),
    "empty objects": lambda: '{"summary": "S", "fileChanges": [' + much("{},"),
}
#: Arguments of one call of `propose_changes`, in the tools dialect.
CALLS = {
    "content": lambda: json.dumps(
        {"changes": [{"path": "a.py", "content": much('x = "1"\n')[: SIZE * 2 // 3]}]}
    ),
    "edits": lambda: json.dumps({"changes": [{"path": "a.py", "edits": [EDIT] * (SIZE // 50)}]}),
    "entries": lambda: json.dumps({"changes": [{"path": "a.py", "edits": [EDIT]}] * (SIZE // 80)}),
    "entries, cut": lambda: CALLS["entries"]()[:-40],
    "numbers": lambda: '{"changes": [' + much("1,") + "1]}",
    "lists": lambda: '{"changes": [' + much("[],") + "[]]}",
}
#: Lines of whole content, new for a file of fifty lines.
LINES = {
    "stub bodies": "    def f(self): ...\n",
    "remarks that leave nothing out": "# otherwise the rest was kept before x = 1\n",
    "words of remarks in code": "value = other.keep(original, existing, previous)\n",
    "escapes": "a = '\\\\n' + \"&lt;\"\n",
}
BASE = "x = 1\n" * 50


def place(content: str) -> None:
    propose(ChangeRequest("a.py", content=content), 1, 1, BASE, "0", lambda _: "1")


def read_prose(text: str) -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    for at in range(0, len(text), PIECE):
        reader.feed(text[at : at + PIECE])
    reader.finish(False)


def read_structured(text: str) -> None:
    reader = StructuredReader(RESPONSE)
    for at in range(0, len(text), PIECE):
        reader.feed(text[at : at + PIECE])
    reader.finish(False)


def read_call(arguments: str) -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    for at in range(0, len(arguments), PIECE):
        reader.call(CallChunk(0, "call_1", "propose_changes", arguments[at : at + PIECE]))
    reader.finish(False)


def measured(read: Callable[[str], None], text: str) -> tuple[float, float]:
    """Seconds of the processor for reading, and the longest for which nobody else could run.

    What the machine gives to other programs is in neither. The collector looks at what is made here, not at what
    the benchmark has imported, as in the program.
    """
    spent: list[float] = []

    def timed() -> None:
        begin = time.thread_time()
        read(text)
        spent.append(time.thread_time() - begin)

    gc.collect()
    gc.freeze()
    reading = threading.Thread(target=timed)
    reading.start()
    longest, last = 0.0, time.process_time()
    while reading.is_alive():
        time.sleep(0.0005)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    return spent[0], longest


def main() -> None:
    forms = [
        *((name, read_structured, make) for name, make in FORMS.items()),
        *((f"as prose: {name}", read_prose, make) for name, make in FORMS.items()),
        *((f"a call: {name}", read_call, make) for name, make in CALLS.items()),
        *((f"content: {name}", place, partial(much, line)) for name, line in LINES.items()),
    ]
    figures: list[Figure] = []
    for name, read, make in forms:
        text = make()
        # the better of two, for the other programs on the machine empty the processor's caches
        spent, longest = map(min, zip(measured(read, text), measured(read, text), strict=True))
        figures += [
            Figure(f"5 MB, {name}", spent * 1000, 500, " ms"),
            Figure("  longest step", longest * 1000, 50, " ms"),
        ]
    show(figures)


if __name__ == "__main__":
    main()

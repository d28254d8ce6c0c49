"""Reading: answers of five megabytes in the worst forms, and for how long they hold the interpreter."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from figures import Figure, show

from tui_agent.answers import schema
from tui_agent.answers.structured import StructuredReader

SIZE = 5_000_000
PIECE = 4_000
RESPONSE = schema.load(Path(__file__).parents[2] / "config").response


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
    "empty objects": lambda: '{"summary": "S", "fileChanges": [' + much("{},"),
}


def measured(text: str) -> tuple[float, float]:
    """Seconds of the processor for reading, and the longest for which nobody else could run.

    What the machine gives to other programs is in neither.
    """
    spent: list[float] = []

    def read() -> None:
        begin = time.thread_time()
        reader = StructuredReader(RESPONSE)
        for at in range(0, len(text), PIECE):
            reader.feed(text[at : at + PIECE])
        reader.finish(False)
        spent.append(time.thread_time() - begin)

    reading = threading.Thread(target=read)
    reading.start()
    longest, last = 0.0, time.process_time()
    while reading.is_alive():
        time.sleep(0.0005)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    return spent[0], longest


def main() -> None:
    taken = {name: measured(make()) for name, make in FORMS.items()}
    for what, part, limit in (("5 MB read, the worst form", 0, 500), ("longest step of it", 1, 50)):
        worst = sorted(taken, key=lambda name: -taken[name][part])[:4]
        note = ", ".join(f"{name} {taken[name][part] * 1000:.0f}" for name in worst)
        show([Figure(what, taken[worst[0]][part] * 1000, limit, " ms", note)])


if __name__ == "__main__":
    main()

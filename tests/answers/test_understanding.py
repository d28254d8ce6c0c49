"""What is not understood refuses its entry, nothing is lost in silence, and what is only shown is not carried out."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from support.edit_requests import hunks
from support.local_replies import CALL, READ, REPLY, J
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.examples import Fences
from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest, Reply
from tui_agent.model.client import CallChunk

DIALECTS = pytest.mark.parametrize("dialect", ["tools", "structured"])
FILE = "def a():\n    return 1\n"
FENCE = f"```python\n{FILE}```"
DIFF = "--- a/api.py\n+++ b/api.py\n@@ -1,2 +1,2 @@\n x\n-a\n+b\n"


def asked(changes: Any, dialect: str, **beside: Any) -> Reply:
    """A reply with these changes, in a call or as a structured reply."""
    if dialect == "tools":
        reader = ToolsReader(RESPONSE, FUNCTIONS)
        arguments = J({"changes": changes, **beside})
        reader.call(CallChunk(0, "c", "propose_changes", arguments))
        return reader.finish(False)
    structured = StructuredReader(RESPONSE, FUNCTIONS)
    structured.feed(J({"summary": "S", "fileChanges": changes, **beside}))
    return structured.finish(False)


def read(text: str, dialect: str = "tools", as_text: bool = True, size: int = 5) -> Reply:
    tools = ToolsReader(RESPONSE, FUNCTIONS, calls_as_text=as_text)
    structured = StructuredReader(RESPONSE, FUNCTIONS)
    reader = tools if dialect == "tools" else structured
    for at in range(0, len(text), size):
        reader.feed(text[at : at + size])
    return reader.finish(False)


def told(reply: Reply) -> str:
    faults = [fault for call in reply.calls for fault in call.faults]
    return " ".join([*reply.faults, *faults, *(one.why for one in reply.refused)])


# ── properties that are not ours ─────────────────────────────────────────────────────────────────────────

WHOLE = {"path": "m.py", "content": "b = 3\n"}
EDITS = {"path": "m.py", "edits": [{"search": "b = 2", "replace": "b = 3"}]}


@DIALECTS
@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({**WHOLE, "startLine": 2, "endLine": 2}, "startLine"),
        ({**WHOLE, "start_line": 2}, "start_line"),
        ({**WHOLE, "lines": [2, 3]}, "lines"),
        ({**WHOLE, "range": {"start": 2, "end": 2}}, "range"),
        ({**WHOLE, "mode": "append"}, "mode"),
        ({**WHOLE, "operation": "append"}, "operation"),
        ({**WHOLE, "insertAt": 3}, "insertAt"),
        ({**WHOLE, "insert_line": 0}, "insert_line"),
        ({**WHOLE, "after": "a = 1"}, "after"),
        ({**WHOLE, "type": "insert"}, "type"),
        ({**WHOLE, "partial": True}, "partial"),
        ({**WHOLE, "op": "patch"}, "op"),
        ({**WHOLE, "encoding": "base64"}, "encoding"),
        ({**WHOLE, "original": "b = 2"}, "original"),
        ({**WHOLE, "file": "other.py"}, "file"),
        ({**WHOLE, "Content": "c\n"}, "Content"),
        ({**EDITS, "dryRun": True}, "dryRun"),
        ({**EDITS, "isRegex": True}, "isRegex"),
        ({"path": "m.py", "edits": [{"search": "a", "replace": "b", "position": "after"}]}, "position"),
        ({"path": "m.py", "edits": [{"search": "a", "replace": "b", "occurrence": 2}]}, "occurrence"),
        ({"path": "m.py", "edits": [{"search": "a", "replace": "b", "replace_all": True}]}, "replace_all"),
        (
            {"path": "m.py", "edits": [{"old": "a", "new": "b", "expected_replacements": 2}]},
            "expected_replacements",
        ),
    ],
)
def test_a_key_that_is_not_known_refuses_its_entry_by_name(entry: Any, key: str, dialect: str) -> None:
    reply = asked([entry, {"path": "n.py", "content": "n\n"}], dialect)
    assert [change.path for change in reply.changes] == ["n.py"]
    assert [refusal.path for refusal in reply.refused] == ["m.py"]
    assert f"{key}`" in told(reply)


@DIALECTS
@pytest.mark.parametrize(
    "entry",
    [
        {**WHOLE, "encoding": "utf-8", "explanation": "Because."},
        {**WHOLE, "mode": "overwrite", "filePath": "m.py"},
        {**EDITS, "type": "edit", "isRegex": False, "description": "Why"},
        {"Path": "m.py", "edits": [{"Search": "b = 2", "REPLACE": "b = 3", "expected_replacements": 1}]},
        {"file-path": "m.py", "edits": [{"old_text": "b = 2", "new_text": "b = 3", "path": "m.py"}]},
    ],
)
def test_a_key_that_asks_for_what_is_done_anyway_refuses_nothing(entry: Any, dialect: str) -> None:
    reply = asked([entry], dialect)
    assert [change.path for change in reply.changes] == ["m.py"] and not reply.refused


@DIALECTS
@pytest.mark.parametrize(
    "setting", [{"dryRun": True}, {"preview": True}, {"apply": False}, {"mode": "dry-run"}]
)
def test_a_setting_beside_the_list_holds_all_of_it_back(setting: dict[str, Any], dialect: str) -> None:
    reply = asked([WHOLE], dialect, **setting)
    assert not reply.changes and next(iter(setting)) in told(reply)


# ── nothing is lost in silence ───────────────────────────────────────────────────────────────────────────

A, B = ({"path": f"{name}.py", "content": f"{name}\n"} for name in "ab")


@DIALECTS
@pytest.mark.parametrize(
    "text",
    [
        f"{J({'summary': 'S', 'fileChanges': [A]})}\n{J({'summary': 'T', 'fileChanges': [B]})}",
        f"{J({'fileChanges': [A]})}\n\nAnd then:\n\n{J({'fileChanges': [B]})}",
        f"{J(A)}\n{J(B)}\n",
        f"```jsonl\n{J(A)}\n{J(B)}\n```",
        f'{{"summary": "S", "fileChanges": [{J(A)}], "fileChanges": [{J(B)}]}}',
        f'{{"summary": "S", "changes": [{J(A)}], "fileChanges": [{J(B)}]}}',
        J({"summary": "S", "changes": {"a.py": {"content": "a\n"}, "b.py": {"content": "b\n"}}}),
        f"<tool_call>{J({'name': 'propose_changes', 'arguments': {'changes': [A]}})}</tool_call>\n{J([B])}",
    ],
)
def test_of_two_answers_both_are_read(text: str, dialect: str) -> None:
    reply = read(text, dialect)
    assert {change.path: change.content for change in reply.changes} == {"a.py": "a\n", "b.py": "b\n"}


@DIALECTS
def test_two_equal_keys_are_both_read_or_refused(dialect: str) -> None:
    edits = '"edits": [{"search": "a", "replace": "b"}], "edits": [{"search": "c", "replace": "d"}]'
    reply = read(f'{{"summary": "S", "fileChanges": [{{"path": "m.py", {edits}}}]}}', dialect)
    assert [len(change.edits) for change in reply.changes] == [2]
    twice = '"content": "a\\n", "content": "b\\n"'
    reply = read(f'{{"summary": "S", "fileChanges": [{{"path": "m.py", {twice}}}]}}', dialect)
    assert not reply.changes and "a second content" in told(reply)


@pytest.mark.parametrize(
    "arguments",
    [
        f"{J({'changes': [A]})}\n{J({'changes': [B]})}",
        f"{J({'changes': [A]})}{J(B)}",
        f"[{J(A)}][{J(B)}]",
        f'{{"changes": [{J(A)}], "changes": [{J(B)}]}}',
    ],
)
def test_the_second_object_of_a_call_is_read(arguments: str) -> None:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    reader.call(CallChunk(0, "c", "propose_changes", arguments))
    assert {change.path for change in reader.finish(False).changes} == {"a.py", "b.py"}


def test_edits_in_the_text_for_another_place_are_told() -> None:
    def said(text: str) -> Reply:
        reader = ToolsReader(RESPONSE, FUNCTIONS)
        reader.feed(text)
        reader.call(CallChunk(0, "c", "propose_changes", J({"changes": [EDITS]})))
        return reader.finish(False)

    block = "m.py\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
    assert "another change to m.py" in told(said(block.format("z = 1", "z = 2")))
    assert not told(said(block.format("b = 2", "b = 3"))), "what is proposed may be shown as well"


@DIALECTS
def test_edits_above_a_reply_are_told_and_their_fence_is_not_taken_for_that_of_the_reply(
    dialect: str,
) -> None:
    reply = read(f"m.py\n```\n{BLOCK.partition(chr(10))[2]}```\n{J({'fileChanges': [EDITS]})}", dialect)
    assert [change.path for change in reply.changes] == ["m.py"]
    assert "another change to m.py" in told(reply)
    assert [span.use for span in reply.spans] == ["shown", "change", "call"]


def test_replies_in_a_list_are_all_read() -> None:
    reply = read(J([{"fileChanges": [A]}, {"fileChanges": [B]}]), "structured")
    assert [change.path for change in reply.changes] == ["a.py", "b.py"]


def test_a_call_in_the_text_beside_one_of_the_provider_is_read_or_offered() -> None:
    for as_text in (True, False):
        reader = ToolsReader(RESPONSE, FUNCTIONS, calls_as_text=as_text)
        reader.feed(READ["Hermes"])
        reader.call(CallChunk(0, "c", "propose_changes", J({"changes": [EDITS]})))
        reply = reader.finish(False)
        assert [change.path for change in reply.changes] == (["m.py", "api.py"] if as_text else ["m.py"])
        assert [change.path for change in reply.offered] == ([] if as_text else ["api.py"])


@pytest.mark.parametrize(
    ("label", "path"),
    [
        ("Create a new file `src/n.py` with the following content:", "src/n.py"),
        ("### 1. `src/a.py`", "src/a.py"),
        ("#### 2) src/a.py", "src/a.py"),
        ("Here is the updated `a.py`:", "a.py"),
        ("Here's the full `src/a.py` file:", "src/a.py"),
        ("`a.py` (full file):", "a.py"),
        ("**a.py** (complete):", "a.py"),
        ("**`a.py`** – new file:", "a.py"),
        ("[src/a.py](src/a.py)", "src/a.py"),
        ("[a.py](a.py)", "a.py"),
        ("Datei `a.py`:", "a.py"),
        ("Fichier : `a.py`", "a.py"),
        ("文件 `a.py`：", "a.py"),
        ("Updated **a.py**:", "a.py"),
        ("Replace the contents of `src/a.py` with:", "src/a.py"),
        ("Save this as `a.py`:", "a.py"),
        ("lib/star-spacing.py", "lib/star-spacing.py"),
        ("**my-app/a-b.py** — the new one:", "my-app/a-b.py"),
        ("`a-b.py` - new", "a-b.py"),
        ("File: __init__.py", "__init__.py"),
        ("_private/a_b.py:", "_private/a_b.py"),
        ("_src/a.py_", "src/a.py"),
        ("Here's `src/a.py`", "src/a.py"),
        ("=== src/a.py ===", "src/a.py"),
        ("--- src/a.py ---", "src/a.py"),
        ("<src/a.py>", "src/a.py"),
        ("(src/a.py)", "src/a.py"),
        ('"src/a.py":', "src/a.py"),
        ("📄 src/a.py", "src/a.py"),
        ("➜ `src/a.py`", "src/a.py"),
        ("File 1/3: src/a.py", "src/a.py"),
        ("### Step 2 – `src/a.py`", "src/a.py"),
        ("And `src/a.py`:", "src/a.py"),
        ("`src/a.py` should be:", "src/a.py"),
        ("You need `src/a.py` with:", "src/a.py"),
        ("Here is src/a.py:", "src/a.py"),
        ("Nowy plik `src/a.py`:", "src/a.py"),
    ],
)
def test_common_labels_are_read(label: str, path: str) -> None:
    change = ChangeRequest(path, content=FILE, fenced=True, labelled=True)
    assert read(f"Sure.\n\n{label}\n\n{FENCE}\n\nDone.").changes == (change,)


@pytest.mark.parametrize(
    "text",
    [
        f"I think of `src/a.py`, more or less:\n\n{FENCE}",
        f"```python # src/a.py\n{FILE}```",
        f"```python src/a.py {{2}}\n{FILE}```",
        f"```python\n# path: src/a.py\n{FILE}```",
        f'```python\n"""src/a.py"""\n{FILE}```',
    ],
)
def test_a_fence_whose_file_is_only_mentioned_keeps_its_name(text: str) -> None:
    reply = read(text)
    assert (reply.changes, [shown.path for shown in reply.shown]) == ((), ["src/a.py"])


@pytest.mark.parametrize(
    "info", ['python {1,3} title="src/a.py"', "python {file=src/a.py}", "py showLineNumbers path=src/a.py"]
)
def test_an_attribute_behind_a_fence_names_its_file(info: str) -> None:
    assert [change.path for change in read(f"```{info}\n{FILE}```").changes] == ["src/a.py"]


def test_the_first_line_of_a_fence_may_be_its_label() -> None:
    reply = read("This is it:\n\n```python\n# src/n.py\nx = 1\n```\n")
    assert [(change.path, change.content) for change in reply.changes] == [
        ("src/n.py", "# src/n.py\nx = 1\n")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Run `tool.py` like this:\n\n```bash\npython tool.py --all\n```",
        "## [a.py](https://host.example/tree/a.py)\n\n```python\nx = 1\n```",
        "In `a.py` it says:\n\n```python\nx = 1\n```",
        "Add this below the imports of `a.py`:\n\n```python\nx = 1\n```",
        "The function in `a.py` around line 3 is:\n\n```python\nx = 1\n```",
    ],
)
def test_other_lines_that_name_a_file_are_no_labels(text: str) -> None:
    reply = read(text)
    assert (reply.changes, reply.refused) == ((), ())


# ── thoughts ─────────────────────────────────────────────────────────────────────────────────────────────

BLOCK = "api.py\n<<<<<<< SEARCH\nget(url)\n=======\nget(url, 5)\n>>>>>>> REPLACE\n"
ASIDES = [
    "[THINK]…[/THINK]", "◁think▷…◁/think▷", "<seed:think>…</seed:think>",
    "<|START_THINKING|>…<|END_THINKING|>", "<THINK>…</THINK>", "<Thought>…</Thought>", "<thoughts>…</thoughts>",
    "<analysis>…</analysis>", "<scratchpad>…</scratchpad>", "<reflection>…</reflection>",
    "<antThinking>…</antThinking>", '<think lang="en">…</think>', "<!-- … -->", "<details>…</details>",
    "<example>…</example>", "<Thinking>…</thinking>", "<thought_process>…</thought_process>",
    "<thinking_process>…</thinking_process>", "<self-reflection>…</self-reflection>", "<cot>…</cot>",
    "<chain-of-thought>…</chain-of-thought>", "<unused94>thought…<unused95>", "[thinking]…[/thinking]",
    "<|begin_of_thought|>…<|end_of_thought|>", "<EXAMPLES>…</EXAMPLES>", '<details open class="x">…</details>',
]  # fmt: skip


@DIALECTS
@pytest.mark.parametrize("aside", ASIDES)
@pytest.mark.parametrize("words", ["", "I looked at it.\n\n"])
@pytest.mark.parametrize("inner", [BLOCK, READ["Hermes"], f"```python api.py\n{FILE}```", READ["our reply"]])
def test_what_is_inside_a_thought_is_not_carried_out(
    aside: str, words: str, inner: str, dialect: str
) -> None:
    for size in (1, 7, 9_999):
        reply = read(
            f"{words}{aside.replace('…', f'{chr(10)}{inner}{chr(10)}')}\n\nNothing to do.", dialect, size=size
        )
        assert (reply.changes, reply.calls, reply.offered) == ((), (), ())
        assert "Nothing to do." in reply.message


OTHER_ASIDES = [
    "{{thinking}}…{{/thinking}}", "{thinking}…{/thinking}", "{% thinking %}…{% endthinking %}",
    "[[think]]…[[/think]]", "<|im_start|>think…<|im_end|>",
    "<|im_start|>assistant thought…<|im_end|>", "<|channel>thought…<channel|>",
    "<|channel|>thinking<|message|>…<|end|>", "«think»…«/think»", "【思考】…【/思考】", "<思考>…</思考>",
    "<denken>…</denken>", "[ANALYSIS]…[/ANALYSIS]", ":::thinking…:::", "::: details Thoughts…:::",
    "<｜think｜>…<｜/think｜>", "<|begin▁of▁thought|>…<|end▁of▁thought|>",
    "<|thinking_start|>…<|thinking_end|>", "< think >…</ think >", "<think\n>…</think>",
    "%%thinking%%…%%/thinking%%", "<!--think-->…<!--/think-->", "/* thinking */…/* end thinking */",
    "<thoughts>…</thought>", "<thinking>…</think>", "[think]…</think>",
    "<размышления>…</размышления>", "<思考过程>…</思考过程>", "<überlegung>…</überlegung>", "<생각>…</생각>",
    "{{#think}}…{{/think}}", "\\<think\\>…\\</think\\>", "Thinking...…...done thinking.", "/* thinking…*/",
]  # fmt: skip


@pytest.mark.parametrize("aside", OTHER_ASIDES)
def test_signs_and_languages_of_thoughts_are_many(aside: str) -> None:
    text = f"{aside.replace('…', f'{chr(10)}{BLOCK}{chr(10)}')}\n\nNothing to do."
    for words, dialect in (("", "tools"), ("I looked at it.\n\n", "structured")):
        reply = read(words + text, dialect, size=7)
        assert (reply.changes, reply.offered) == ((), ())
        assert "Nothing to do." in reply.message


@pytest.mark.parametrize(
    "aside", ["[PLAN]…[/PLAN]", "<template>…</template>", "<план>…</план>", "<考え中>…</考え中>"]
)
def test_what_is_inside_other_signs_is_offered(aside: str) -> None:
    reply = read(f"I looked at it.\n\n{aside.replace('…', f'{chr(10)}{BLOCK}')}\n\nNothing to do.")
    assert not reply.changes
    assert reply.offered or any(one.use == "thought" for one in reply.spans)


@pytest.mark.parametrize("line", ["/** Words. */", "<!-- words -->"])
def test_a_comment_in_a_diff_without_its_blank_stays_the_diffs_line(line: str) -> None:
    diff = f"--- a/m.js\n+++ b/m.js\n@@ -1,3 +1,4 @@\n{line}\n x\n+y\n z\n"
    assert not read(f"As asked.\n\n{diff}\nThat is all.\n").changes
    fenced = read(f"As asked.\n\n```diff\n{diff}```\n").changes
    assert fenced[0].diff[0].old == f"{line}\nx\nz\n"


@pytest.mark.parametrize(
    "line", ["[analysis]", "{{ reasoning }}", "**Thoughts**", "(rationale)", "/* internal */"]
)
def test_a_name_in_signs_that_nothing_ends_is_no_thought(line: str) -> None:
    assert len(read(f"{line}\n\n{BLOCK}").changes) == 1


@pytest.mark.parametrize(
    "content",
    [
        "<!-- a comment -->\n<p>x</p>\n<!-- b -->\n",
        "# T\n<details>\n<summary>S</summary>\nx\n</details>\n",
        "<think>\nx\n</think>\n",
    ],
)
def test_content_to_be_written_keeps_every_character(content: str) -> None:
    fenced = read(f"```html site/index.html\n{content}```\n").changes
    blocks = read(f"site/index.html\n<<<<<<< SEARCH\nold\n=======\n{content}>>>>>>> REPLACE\n").changes
    added = "".join(f"+{line}\n" for line in content.splitlines())
    patch = read(f"*** Begin Patch\n*** Add File: site/index.html\n{added}*** End Patch\n").changes
    field = asked([{"path": "site/index.html", "content": content}], "structured").changes
    assert [fenced[0].content, blocks[0].edits[0].new, patch[0].content, field[0].content] == [content] * 4


# ── shown, not meant ─────────────────────────────────────────────────────────────────────────────────────


@DIALECTS
@pytest.mark.parametrize(
    "text",
    [
        f"I have not sent `<tool_call>{J(CALL)}</tool_call>`, because it was not wanted.",
        f"The reply format is documented like this:\n\n```json\n{J(REPLY, indent=1)}\n```\n\nThat is all.",
        f"A reply, for example:\n\n```json\n{J(REPLY)}\n```\n",
        f"````markdown\n# Protocol\n\n```json\n{J(REPLY)}\n```\n````\n",
        f"The bug came with this commit:\n\n```diff\n{DIFF}```\nIt should be undone by hand.",
        f"```\ncommit 0123456789abcdef\nAuthor: A <a@b.c>\n\n    Words\n\n{DIFF}```",
        "What changes:\n\n```diff\n-timeout = 3\n+timeout = 30\n```\n\nis only the number.",
    ],
)
def test_what_is_only_shown_is_not_carried_out(text: str, dialect: str) -> None:
    reply = read(text, dialect)
    assert not any((reply.changes, reply.calls, reply.refused))


@pytest.mark.parametrize("form", READ)
def test_calls_as_text_are_only_offered_where_the_server_sends_calls_of_its_own(form: str) -> None:
    reply = read(READ[form], as_text=False)
    assert not reply.changes and not reply.calls
    assert [change.path for change in reply.offered] == ["api.py"]
    assert all(change.offered for change in reply.offered)


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────────────

PIECES = [
    *READ.values(), BLOCK, FENCE, DIFF, f"```python api.py\n{FILE}```", "<think>\nx\n</think>", "[THINK]a[/THINK]",
    "<!-- x -->", "Words.", "`a.py`:", "```diff\n-a\n+b\n```", "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch",
    "{", "}", "<tool_call>", "```", "\r\n", "\ufeff", "<details>\nx\n</details>", "é😀", "=======", "\ud83d",
]  # fmt: skip


@DIALECTS
def test_every_character_of_a_reply_belongs_to_something(dialect: str) -> None:
    draw = Random(31)
    for _ in range(400):
        text = "\n".join(draw.choice(PIECES) for _ in range(draw.randint(1, 5)))
        for _ in range(draw.randint(0, 3)):
            at = draw.randrange(len(text))
            text = (
                text[:at] + draw.choice(("", "\n", "`", "<", "{", "x")) + text[at + draw.randint(0, 3) :]
                or "x"
            )
        reply = read(text, dialect, size=draw.choice((1, 13, 9_999)))
        spans = reply.spans
        assert [span.begin for span in spans] == [0, *(span.end for span in spans[:-1])][: len(spans)]
        assert all(span.begin < span.end for span in spans)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert (spans[-1].end if spans else 0) == len(whole)
        uses = {span.use for span in spans}
        assert not (reply.changes and not uses & {"change", "call"}), text


def test_the_ledger_tells_what_each_part_is() -> None:
    text = f"<think>hm</think>\nI add it.\n\n{BLOCK}\n```\n<<<<<<< SEARCH\n```\n\n{READ['Hermes']}\nDone."
    reply = read(text)
    parts = {text[span.begin : span.end].strip()[:12]: span.use for span in reply.spans}
    assert (
        list(parts.values()) == ["thought", "shown", "change", "refusal", "shown", "call", "shown"] or parts
    )
    assert [use for use in parts.values() if use != "shown"] == ["thought", "change", "refusal", "call"]


@pytest.mark.parametrize("size", [0, 2])
def test_arguments_keep_json(size: int) -> None:
    assert json.loads(asked([WHOLE], "tools").calls[0].arguments) == {"changes": [WHOLE]}


@pytest.mark.parametrize(
    "line",
    [
        "*** Modify File: m.py",
        "*** Edit File: m.py",
        "***  Update File: m.py",
        "*** Update  File : m.py",
        "*** update file: m.py",
    ],
)
def test_a_section_of_an_envelope_may_have_padding_or_another_verb(line: str) -> None:
    reply = read(f"*** Begin Patch\n*** Add File: a\n+x\n{line}\n@@\n-a\n+b\n*** End Patch\n")
    assert [(change.path, change.diff) for change in reply.changes] == [
        ("a", ()),
        ("m.py", hunks("@@\n-a\n+b")),
    ]


@pytest.mark.parametrize(
    "line", ["*** Replace File: m.py", "*** Rename File: m.py", "*** Update: m.py", "***Patch File : m.py"]
)
def test_a_section_of_another_kind_is_refused(line: str) -> None:
    for above in ("", "*** Add File: a\n+x\n") if " File" in line else ("",):
        reply = read(f"*** Begin Patch\n{above}{line}\n@@\n-a\n+b\n*** End Patch\n")
        assert [change.path for change in reply.changes] == (["a"] if above else [])
        assert [refusal.path for refusal in reply.refused] == ["m.py"] and "unknown line" in told(reply)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("*** begin patch", "*** end patch"),
        ("***Begin Patch", "***End Patch"),
        ("*** Begin Patch ***", "*** End Patch ***"),
    ],
)
def test_an_envelope_may_be_written_otherwise(begin: str, end: str) -> None:
    reply = read(f"{begin}\n*** Update File: m.py\n@@\n-a\n+b\n{end}\n")
    assert [change.path for change in reply.changes] == ["m.py"]
    assert "without a file name" in told(read(f"{begin}\n@@\n-a\n+b\n{end}\n"))


@pytest.mark.parametrize("dialect", ["tools", "structured"])
@pytest.mark.parametrize("tag", ["plan", "draft", "old", "my-notes", "x:y", "Previously"])
@pytest.mark.parametrize("inner", [BLOCK, READ["Hermes"], READ["our reply"]])
def test_what_is_inside_another_tag_is_only_offered(inner: str, tag: str, dialect: str) -> None:
    reply = read(f"Words.\n\n<{tag}>\n{inner}\n</{tag}>\n\nNothing to do.", dialect)
    assert (reply.changes, reply.calls) == ((), ())
    assert [(change.path, tag in change.offered) for change in reply.offered] == [("api.py", True)]
    assert "Nothing to do." in reply.message


@pytest.mark.parametrize("tag", ["answer", "div", "my_answer"])
def test_what_is_inside_a_tag_around_an_answer_is_read(tag: str) -> None:
    assert [change.path for change in read(f"<{tag}>\n{BLOCK}\n</{tag}>\n").changes] == ["api.py"]


def test_a_change_inside_another_tag_beside_one_of_its_file_is_told() -> None:
    reply = read(f"<draft>\n{BLOCK}</draft>\n\n{BLOCK.replace('url, 5', 'url, 6')}")
    assert len(reply.changes) == 1 and not reply.offered and "another change to api.py" in told(reply)


def test_fences_are_found_as_far_as_they_are_asked_about_in_any_order() -> None:
    text = "a\n```\nx {1}\n```\n{2} b\n```\ny {3}\n```\n{4}"
    places = [text.index(f"{{{number}}}") for number in (1, 2, 3, 4)]
    forwards, backwards = Fences(text), Fences(text)
    assert [forwards.quotes(at) for at in places] == [True, False, True, False]
    assert [backwards.quotes(at) for at in reversed(places)] == [False, True, False, True]

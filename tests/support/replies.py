"""Answers as models and other tools write them: what each changes when all of it is applied, or that it is refused.

A `Sample` is one answer and the files that are there before. `after` names the files as they must be once everything
was applied that needs no hand; files that it does not name stay as they were. `said` is a part of what the person and
the model are told.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PY = "import os\n\n\ndef load(path):\n    return open(path).read()\n\n\ndef main():\n    print(load('a'))\n"
MD = (
    "# Tool\n\nInstall it:\n\n```\npip install tool\n```\n\nThen run:\n\n```bash\ntool run\n```\n\nThe end.\n"
)
NEW = PY.replace("open(path).read()", "Path(path).read_text()")
FILES = {"src/app.py": PY, "README.md": MD, "old.txt": "old\n"}
BLOCK = "<<<<<<< SEARCH\n    return open(path).read()\n=======\n    return Path(path).read_text()\n>>>>>>> REPLACE\n"
HUNK = "@@ -2,5 +2,5 @@\n \n \n def load(path):\n-    return open(path).read()\n+    return Path(path).read_text()\n \n"
DIFF = f"--- a/src/app.py\n+++ b/src/app.py\n{HUNK}"
ENVELOPE = (
    "*** Begin Patch\n*** Update File: src/app.py\n@@ def load(path):\n-    return open(path).read()\n"
    "+    return Path(path).read_text()\n*** End Patch\n"
)


@dataclass(frozen=True)
class Sample:
    name: str
    text: str
    after: dict[str, str | None] = field(default_factory=dict)
    said: str = ""
    files: dict[str, str] = field(default_factory=lambda: FILES)


def fence(text: str, info: str = "") -> str:
    return f"```{info}\n{text}```\n"


def indented(text: str, by: str = "   ") -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


DONE: dict[str, str | None] = {"src/app.py": NEW}
SETEXT = "Title\n=======\n\nText.\n"
CONFLICT = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> branch\nd\n"

READ = [
    # ── search/replace blocks ──
    Sample("aider, path above the fence", f"I'll do that.\n\nsrc/app.py\n{fence(BLOCK, 'python')}", DONE),
    Sample("aider, path inside the fence", fence(f"src/app.py\n{BLOCK}", "python"), DONE),
    Sample("a block behind a bold path", f"**src/app.py**\n\n{fence(BLOCK)}Done.", DONE),
    Sample("a block whose file a sentence names", f"In `src/app.py`, use pathlib:\n\n{fence(BLOCK)}", DONE),
    Sample("several blocks without a fence", f"src/app.py\n{BLOCK}\n" + BLOCK.replace("    return open(path).read()", "import os").replace("    return Path(path).read_text()", "import re"), {"src/app.py": NEW.replace("import os", "import re")}),
    Sample("a diff in prose with fewer lines than it says", DIFF.replace("-2,5 +2,5", "-2,9 +2,9") + "\nDone.", DONE),
    Sample("a diff in prose with more lines than it says", DIFF.replace("-2,5 +2,5", "-2,3 +2,3") + "\nDone.", DONE),
    Sample("a diff in prose without numbers", DIFF.replace("-2,5 +2,5", "...") + "\nDone.", DONE),
    Sample("a diff with letters for numbers", fence(DIFF.replace("-2,5 +2,5", "-XX,7 +XX,8"), "diff"), DONE),
    Sample("a diff whose `@@` is not closed", DIFF.replace("+2,5 @@", "+2,5") + "\nDone.", DONE),
    Sample("a block without a fence", f"Here:\n\nsrc/app.py\n{BLOCK}\nDone.", DONE),
    Sample("Cline's markers", "src/app.py\n" + fence(BLOCK.replace("<<<<<<<", "-------").replace(">>>>>>>", "+++++++")), DONE),
    Sample("Roo's line hint", "src/app.py\n" + fence(BLOCK.replace("SEARCH\n", "SEARCH\n:start_line:5\n-------\n")), DONE),
    Sample("a block indented in a list", f"1. First, in src/app.py:\n\n   src/app.py\n{indented(fence(BLOCK, 'python'))}", DONE),
    Sample("a block in a list's own line", "src/app.py\n- ```python\n" + indented(BLOCK, "  ") + "  ```\n", DONE),
    Sample("markers of five signs", "src/app.py\n" + fence(BLOCK.replace("<<<<<<<", "<<<<<").replace("=======", "=====").replace(">>>>>>>", ">>>>>")), DONE),
    Sample(
        "a heading underlined by five signs",
        "doc.md\n" + fence("<<<<<<< SEARCH\nTitle\n=====\n=======\nOther\n=====\n>>>>>>> REPLACE\n"),
        {"doc.md": "Other\n=====\n\nText.\n"},
        files={"doc.md": "Title\n=====\n\nText.\n"},
    ),
    Sample(
        "two files in one fence",
        fence(f"src/app.py\n{BLOCK}\nold.txt\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"),
        DONE | {"old.txt": "new\n"},
    ),
    Sample(
        "two fences for one file",
        f"src/app.py\n{fence(BLOCK)}\nAnd in `src/app.py`:\n"
        + fence("<<<<<<< SEARCH\nimport os\n=======\nfrom pathlib import Path\n>>>>>>> REPLACE\n"),
        {"src/app.py": NEW.replace("import os", "from pathlib import Path")},
    ),
    Sample(
        "a block that holds a fence",
        "README.md\n" + fence("<<<<<<< SEARCH\n```bash\ntool run\n```\n=======\n```bash\ntool start\n```\n>>>>>>> REPLACE\n", "markdown"),
        {"README.md": MD.replace("tool run", "tool start")},
    ),
    # ── diffs ──
    Sample("a diff in a fence", f"This does it:\n\n{fence(DIFF, 'diff')}", DONE),
    Sample("a diff in a fence without a language", fence(DIFF), DONE),
    Sample("a diff in prose", f"This does it:\n\n{DIFF}\nThat is all.", DONE),
    Sample("a diff in prose and a list below it", f"{DIFF}\n+ uses pathlib\n- no open file is left\n", DONE),
    Sample("a diff indented in a list", f"1. Use pathlib:\n\n{indented(fence(DIFF, 'diff'))}\n2. Run it.\n", DONE),
    Sample("git's diff in prose", f"diff --git a/src/app.py b/src/app.py\nindex 1234567..89abcde 100644\n{DIFF}", DONE),
    Sample("a diff without prefixes", fence(DIFF.replace("a/src", "src").replace("b/src", "src"), "diff"), DONE),
    Sample("a diff with dates", fence(DIFF.replace("app.py\n", "app.py\t2024-01-01 10:00:00.000000000 +0000\n"), "diff"), DONE),
    Sample("a diff with wrong counts in a fence", fence(DIFF.replace("-2,5 +2,5", "-1,3 +1,9"), "diff"), DONE),
    Sample("a diff whose file the label names", f"`src/app.py`\n{fence(HUNK, 'diff')}", DONE),
    Sample("a diff without any header", "### `src/app.py`\n" + fence("-    return open(path).read()\n+    return Path(path).read_text()\n", "diff"), DONE),
    Sample(
        "a folder named a",
        fence("diff --git a/x.py a/x.py\n--- a/x.py\n+++ a/x.py\n@@ -1 +1 @@\n-1\n+2\n", "diff"),
        {"a/x.py": "2\n"},
        files={"a/x.py": "1\n", "x.py": "1\n"},
    ),
    Sample(
        "a quoted name",
        fence('diff --git "a/\\303\\251 \\"x\\".py" "b/\\303\\251 \\"x\\".py"\n--- "a/\\303\\251 \\"x\\".py"\n'
              '+++ "b/\\303\\251 \\"x\\".py"\n@@ -1 +1 @@\n-1\n+2\n', "diff"),
        {'é "x".py': "2\n"},
        files={'é "x".py': "1\n"},
    ),
    Sample(
        "a name with a blank",
        "diff --git a/my file.txt b/my file.txt\n--- a/my file.txt\t\n+++ b/my file.txt\t\n@@ -1 +1 @@\n-1\n+2\n\nDone.\n",
        {"my file.txt": "2\n"},
        files={"my file.txt": "1\n"},
    ),
    Sample("git creates in prose", "diff --git a/new.py b/new.py\nnew file mode 100644\nindex 0000000..5626abf\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,3 @@\n+one\n+\n+two\n\nDone.", {"new.py": "one\n\ntwo\n"}),
    Sample("git creates an empty file", "diff --git a/new.py b/new.py\nnew file mode 100644\nindex 0000000..e69de29\n", {"new.py": ""}),
    Sample("git deletes in prose", "diff --git a/old.txt b/old.txt\ndeleted file mode 100644\nindex 5626abf..0000000\n--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n\nGone.", {"old.txt": None}),
    Sample("git renames in prose", "diff --git a/old.txt b/kept/new.txt\nsimilarity index 100%\nrename from old.txt\nrename to kept/new.txt\n", {"old.txt": None, "kept/new.txt": "old\n"}),
    Sample("git renames and changes", fence("diff --git a/old.txt b/new.txt\nsimilarity index 50%\nrename from old.txt\nrename to new.txt\n--- a/old.txt\n+++ b/new.txt\n@@ -1 +1 @@\n-old\n+new\n", "diff"), {"old.txt": None, "new.txt": "new\n"}),
    Sample(
        "a mail of git format-patch",
        "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\n"
        "Date: Mon, 1 Jan 2024 10:00:00 +0100\nSubject: [PATCH] Use pathlib\n\n---\n src/app.py | 2 +-\n"
        f" 1 file changed, 1 insertion(+), 1 deletion(-)\n\ndiff --git a/src/app.py b/src/app.py\n{DIFF}-- \n2.39.2\n\n",
        DONE,
    ),
    Sample(
        "a mail in a fence",
        fence("From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Use pathlib\n\n---\n"
              f" src/app.py | 2 +-\n 1 file changed\n\ndiff --git a/src/app.py b/src/app.py\n{DIFF}-- \n2.39.2\n\n", "patch"),
        DONE,
    ),
    Sample(
        "a diff of Markdown with a fence inside",
        fence("--- a/README.md\n+++ b/README.md\n@@ -3,10 +3,10 @@ Tool\n Install it:\n \n ```\n-pip install tool\n+pipx install tool\n ```\n"
              " \n Then run:\n \n ```bash\n-tool run\n+tool start\n", "diff"),
        {"README.md": MD.replace("pip install", "pipx install").replace("tool run", "tool start")},
    ),
    Sample(
        "a diff of Markdown whose fences lost their blank",
        fence("--- a/README.md\n+++ b/README.md\n@@ -3,10 +3,10 @@ Tool\n Install it:\n \n```\n-pip install tool\n+pipx install tool\n```\n"
              " \n Then run:\n \n```bash\n-tool run\n+tool start\n", "diff"),
        {"README.md": MD.replace("pip install", "pipx install").replace("tool run", "tool start")},
    ),
    # ── envelopes ──
    Sample("codex's envelope in prose", f"Applying:\n\n{ENVELOPE}\nDone.", DONE),
    Sample("codex's envelope in a shell", fence(f"apply_patch <<'EOF'\n{ENVELOPE}EOF\n", "bash"), DONE),
    Sample("an envelope in its tag", f"<apply_patch>\n{ENVELOPE}</apply_patch>\n", DONE),
    Sample("an envelope that adds", "*** Begin Patch\n*** Add File: new.py\n+one\n\n+two\n*** End Patch\n", {"new.py": "one\n\ntwo\n"}),
    # ── whole files ──
    Sample("a fence that names its file", f"```python src/app.py\n{NEW}```\n", DONE),
    Sample("a fence with a title", f'```python title="src/app.py"\n{NEW}```\n\nRun it:\n\n```bash\npython src/app.py\n```\n', DONE),
    Sample("a fence below a heading", f"### `src/app.py`\n\n```python\n{NEW}```\n", DONE),
    Sample("a file in a list", f"1. The file:\n\n   ```python src/app.py\n{indented(NEW)}   ```\n", DONE),
    Sample("Markdown in a longer fence", f"````markdown README.md\n{MD.replace('run', 'start')}````\n", {"README.md": MD.replace("run", "start")}),
    Sample("Markdown in tildes", f"~~~markdown README.md\n{MD.replace('run', 'start')}~~~\n", {"README.md": MD.replace("run", "start")}),
    Sample("a command in a bare fence below", f"```python src/app.py\n{NEW}```\n\nRun it:\n\n```\npython src/app.py\n```\n", DONE),
    # ── several things about one file ──
    Sample("two diffs of one file", fence(DIFF, "diff") + "\nand\n\n" + fence("--- a/src/app.py\n+++ b/src/app.py\n@@ -1,3 +1,3 @@\n-import os\n+from pathlib import Path\n \n \n", "diff"), {"src/app.py": NEW.replace("import os", "from pathlib import Path")}),
    Sample("two sections of one file", ENVELOPE.replace("*** End", "*** Update File: src/app.py\n@@\n-import os\n+from pathlib import Path\n*** End"), {"src/app.py": NEW.replace("import os", "from pathlib import Path")}),
    Sample("a diff, then a block", fence(DIFF, "diff") + "\nsrc/app.py\n" + fence("<<<<<<< SEARCH\nimport os\n=======\nfrom pathlib import Path\n>>>>>>> REPLACE\n"), {"src/app.py": NEW.replace("import os", "from pathlib import Path")}),
    Sample("removed, then written again", "*** Begin Patch\n*** Delete File: old.txt\n*** Add File: old.txt\n+other\n*** End Patch\n", {"old.txt": "other\n"}),
]  # fmt: skip

REFUSED = [
    Sample("two dividers", "doc.md\n" + fence("<<<<<<< SEARCH\nTitle\n=======\n=======\nOther\n=======\n>>>>>>> REPLACE\n"), said="more than one possible divider", files={"doc.md": SETEXT}),
    Sample("an extra divider at the end", "src/app.py\n" + fence(BLOCK.replace(">>>>>>>", "=======\n>>>>>>>")), said="more than one possible divider"),
    Sample("no divider", "src/app.py\n" + fence(BLOCK.replace("=======\n", "")), said="divider"),
    Sample("a divider of six", "src/app.py\n" + fence(BLOCK.replace("=======", "======")), said="divider"),
    Sample("a conflict searched for", "a.txt\n" + fence(f"<<<<<<< SEARCH\n{CONFLICT}=======\na\nb\nd\n>>>>>>> REPLACE\n"), said="a.txt", files={"a.txt": CONFLICT}),
    Sample("markers of another tool", "src/app.py\n" + fence(BLOCK.replace("SEARCH", "ORIGINAL").replace("REPLACE", "UPDATED")), said="ORIGINAL"),
    Sample("a conflict as content", "src/app.py\n" + fence(f"<<<<<<< HEAD\n{PY}=======\n{NEW}>>>>>>> new\n", "python"), said="src/app.py"),
    Sample("a conflict as content, the fence names it", fence(f"<<<<<<< HEAD\n{PY}=======\n{NEW}>>>>>>> new\n", "python src/app.py"), said="src/app.py"),
    Sample("padded markers", "src/app.py\n" + fence(indented(BLOCK, "  ")), said="SEARCH"),
    Sample("padded markers, the fence names it", fence(indented(BLOCK, "  "), "python src/app.py"), said="SEARCH"),
    Sample("markers of another tool, the fence names it", fence(BLOCK.replace("SEARCH", "ORIGINAL").replace("REPLACE", "UPDATED"), "python src/app.py"), said="ORIGINAL"),
    Sample("a mixed family of markers", "src/app.py\n" + fence(BLOCK.replace(">>>>>>>", "+++++++")), said="marker"),
    Sample("a block without its end", "src/app.py\n" + fence(BLOCK.replace(">>>>>>> REPLACE\n", "")), said="SEARCH block"),
    Sample("a block without a name", fence(BLOCK), said="without a file name"),
    Sample("a block among other text", fence(f"Some words.\n{BLOCK}", "python src/app.py"), said="besides its edits"),
    Sample("a block in <source>", f"src/app.py\n<source>\n{BLOCK}</source>\n", said="source"),
    Sample("a file in <source>", f"src/app.py\n<source>\n{NEW}</source>\n", said="source"),
    Sample("Cline's tags", f"<write_to_file>\n<path>src/app.py</path>\n<content>\n{NEW}</content>\n</write_to_file>\n", said="write_to_file"),
    Sample("Roo's tags", f"<apply_diff>\n<path>src/app.py</path>\n<diff>\n{BLOCK}</diff>\n</apply_diff>\n", said="apply_diff"),
    Sample("a file in its tag", f'<file path="src/app.py">\n{NEW}</file>\n', said="src/app.py"),
    Sample("an edit in tags", "<edit>\n<search>import os</search>\n<replace>import sys</replace>\n</edit>\n", said="<edit>"),
    Sample("tags as content", fence("<edit_file>\nimport os\n</edit_file>\n", "python src/app.py"), said="src/app.py"),
    Sample("a hunk as content", fence(HUNK, "python src/app.py"), said="src/app.py"),
    Sample("git's binary patch", "diff --git a/x.png b/x.png\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 4\nLcmZ\n\nliteral 0\nHcmV?d00001\n\n", said="binary"),
    Sample("binary files differ", fence("diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n", "diff"), said="binary"),
    Sample("a combined diff", fence("diff --cc src/app.py\nindex 1,2..3\n--- a/src/app.py\n+++ b/src/app.py\n@@@ -1,1 -1,1 +1,1 @@@\n- import os\n -import sys\n++import re\n", "diff"), said="combined"),
    Sample("a copy", "diff --git a/old.txt b/new.txt\nsimilarity index 100%\ncopy from old.txt\ncopy to new.txt\n", said="copy"),
    Sample("a link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+old.txt\n\\ No newline at end of file\n", said="link"),
    Sample("a diff in prose with too few lines, and words", DIFF.replace("-2,5 +2,5", "-2,9 +2,9") + "def more():\n-    x\n", said="fewer lines"),
    Sample("a diff of two names", fence(DIFF.replace("a/src/app.py", "a/old.txt"), "diff"), said="two files"),
    Sample("a hunk in prose", f"Change it:\n\n{HUNK}\nDone.", said="@@"),
    Sample("an added file without its marks", "*** Begin Patch\n*** Add File: new.py\n+one\ntwo\n+three\n*** End Patch\n", said="new.py"),
    Sample("git's added file without its marks", fence("diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,3 @@\n+one\n two\n+three\n", "diff"), said="new.py"),
    Sample("an envelope without its beginning", ENVELOPE.replace("*** Begin Patch\n", ""), said="src/app.py"),
    Sample("an envelope without its end", ENVELOPE.replace("*** End Patch\n", ""), said="src/app.py"),
    Sample("an unknown line of an envelope", ENVELOPE.replace("*** End", "*** Frobnicate: x\n*** End"), said="src/app.py"),
    Sample("Markdown cut at its own fence", f"```markdown README.md\n{MD}```\n", said="README.md"),
    Sample("Markdown cut at a bare fence", "```markdown README.md\n# Tool\n\n```\npip install tool\n```\n\nThe end.\n```\n", said="README.md"),
    Sample("code cut at a bare fence", '```python src/app.py\n"""Tool.\n\n```\ntool run\n```\n"""\n' + NEW + "```\n", said="src/app.py"),
    Sample("an excerpt below a heading", f"### `src/app.py`\n\n```python\n{PY[:62]}```\n", said="src/app.py"),
    Sample("a file in a fence that never closed", f"```\n\n```python src/app.py\n{NEW}```\n", said="src/app.py"),
    Sample("a file less indented than its fence", f"1. The file:\n\n   ```python src/app.py\n{NEW}   ```\n", said="indented"),
    Sample("a fence that is not closed", f"```python src/app.py\n{NEW}", said="src/app.py"),
    Sample("a quoted diff", "".join(f"> {line}\n" for line in fence(DIFF, "diff").splitlines()), said="quoted"),
    Sample("whole content twice", f"```python src/app.py\n{NEW}```\n\nBetter:\n\n```python src/app.py\n{PY}x = 1\n```\n", said="src/app.py"),
    Sample("a diff after which the lines are others", fence(DIFF, "diff") + fence(DIFF.replace("Path(path).read_text()", "read(path)"), "diff"), said="same lines"),
    Sample("changed and removed", fence(DIFF, "diff") + "\n*** Begin Patch\n*** Delete File: src/app.py\n*** End Patch\n", said="src/app.py"),
]  # fmt: skip

SHOWN = [
    Sample("a command", "Run this:\n\n```bash\nmake test\n```\n"),
    Sample("a quotation of code", "In src/app.py it says:\n\n```python\nimport os\n```\n"),
    Sample("a reference with line numbers", "```12:15:src/app.py\nimport os\n```\n"),
    Sample("output that holds a diff", f"```console\n$ git diff\n{DIFF}```\n"),
    Sample(
        "words about forms",
        "Use `*** Begin Patch` or `<<<<<<< SEARCH` blocks; `--- a/x` is a header.\n\n--- \n\nDone.\n",
    ),
    Sample("a language with a dot", "```vb.net\nDim x = 1\n```\n"),
    Sample("tags of HTML", "<details>\n<summary>More</summary>\n\nText.\n\n</details>\n"),
]

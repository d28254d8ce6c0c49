"""READMEs and manuals of packages as replies: none of them changes a file that is there."""

from __future__ import annotations

import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.proofs.tally import Tally

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import version_edits
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.tools_reader import ToolsReader
from tui_agent.answers.values import ChangeRequest, Reply
from tui_agent.edits.proposals import propose

_ENDS = (".md", ".rst", "metadata", "readme", "readme.txt")
_SHORTEST = 200
#: These hold many manuals, of their own and of what they come with.
MORE_WHEELS = (("fastapi", "0.110.0"), ("pip", "24.0"), ("textual", "0.60.0"), ("wagtail", "6.0"))
MORE_TARBALLS = (("npm", "10.8.2"), ("fastify", "4.26.0"), ("undici", "6.0.0"), ("svelte", "4.2.10"))
#: What stands for a file that is there, where the package has none of that name: short, for a short one is soon like
#: another.
STAND_INS = {
    "a file of one line": "x = 1\n",
    "a file of three lines": "import os\n\nprint(os.name)\n",
    "a file of thirty lines": "".join(f"line_{number} = {number}\n" for number in range(30)),
    "another package.json": '{\n  "name": "mine",\n  "version": "1.0.0",\n  "scripts": {\n    "test": "jest"\n  }\n}\n',
}


def prove(tally: Tally, scale: float) -> None:
    version_edits.fetch()
    version_edits.fetch(MORE_WHEELS, MORE_TARBALLS)
    texts = dict.fromkeys(text for text in (*_of_archives(), *_installed()) if len(text) >= _SHORTEST)
    some = list(texts)[: max(1, int(len(texts) * scale))]
    named = 0
    for number, text in enumerate(some):
        changes = [change for reply in (_in_calls(text), _structured(text)) for change in reply.changes]
        named += bool(changes)
        for kind, base in STAND_INS.items():
            worst = next((change for change in changes if _changes(change, base)), None)
            tally.case(kind, worst is None, what=f"{number} {worst.path if worst else ''}: {text[:200]!r}")
    tally.figures([("texts", "with a file in them"), (f"{len(some):,}", f"{named:,}")])


def _changes(change: ChangeRequest, base: str) -> bool:
    """Whether the change would be among all that are applied, over a file that holds this."""
    made = propose(change, 1, 1, base, "0", lambda _: "1")
    return made.state == "pending" and not made.ask


def _in_calls(text: str) -> Reply:
    reader = ToolsReader(RESPONSE, FUNCTIONS)
    reader.feed(text)
    return reader.finish(False)


def _structured(text: str) -> Reply:
    reader = StructuredReader(RESPONSE, FUNCTIONS)
    reader.feed(text)
    return reader.finish(False)


def _of_archives() -> Iterator[str]:
    for path in sorted(version_edits.FOLDER.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if name.lower().endswith(_ENDS):
                    yield wheel.read(name).decode("utf-8", "replace")
    for path in sorted(version_edits.FOLDER.glob("*.tgz")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.lower().endswith(_ENDS) and (file := archive.extractfile(member)):
                    yield file.read().decode("utf-8", "replace")


def _installed() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*")):
        if path.name.lower().endswith(_ENDS) and path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")

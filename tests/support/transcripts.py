"""What models write around their changes, as the transcripts of people show it: labels, wrappers, thoughts, chatter."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

#: Lines above a whole file, by what stands for its path.
LABELS = (
    "Create a new file `{}` with the following content:",
    "### 1. `{}`",
    "Here is the updated `{}`:",
    "`{}` (full file):",
    "**{}** (complete):",
    "**`{}`**",
    "[{0}]({0})",
    "Datei `{}`:",
    "文件 `{}`：",
    "File: {}",
    "{}:",
    "#### {}",
    "Updated `{}`:",
    "Replace the contents of `{}` with:",
    "Now `{}` becomes:",
    "1. **{}**",
)
_OPENINGS = (
    "",
    "Sure! ",
    "Certainly, here is the change.\n\n",
    "I looked at the code: the helper is called twice, so I moved it.\n\n",
    "Let me fix that.\n\n",
    "## Changes\n\n",
    "The tests fail because the default is wrong. I will change it:\n\n",
)
_CLOSINGS = (
    "",
    "\nLet me know if you want anything else!\n",
    "\nThen run `pytest -q` to check it.\n",
    "\n```bash\npytest -q\n```\n",
    "\n**Summary**: one place was changed, nothing else is affected.\n",
    "\n| file | change |\n|---|---|\n| one | small |\n",
)
_THOUGHTS = (
    "<think>\n{}\n</think>\n",
    "[THINK]{}[/THINK]\n",
    "◁think▷{}◁/think▷\n",
    "<thinking>\n{}\n</thinking>\n\n",
    "<analysis>{}</analysis>\n",
    "<scratchpad>\n{}\n</scratchpad>\n",
    "<seed:think>{}</seed:think>\n",
)
#: A change that is only thought of; it would do to any of the files what nobody asked for.
_THOUGHT = (
    "Perhaps this?\n\nsrc/a.py\n```\n<<<<<<< SEARCH\nimport os\n=======\nthought()\n>>>>>>> REPLACE\n```\nNo."
)


def around(draw: Random, form: str) -> Callable[[str], str]:
    """What is written around a reply of that form: it changes nothing of what the reply means."""
    if form.endswith("in a call"):
        return lambda reply: reply
    thoughts = draw.choice(_THOUGHTS) if draw.random() < 0.3 else ""
    thought = thoughts.format(_THOUGHT) if thoughts else ""
    if form.startswith(("edits", "diff", "patch in `diff`", "content")) and form not in (
        "diff in a fence",
        "diff in prose",
    ):
        match draw.randrange(4):
            case 0:
                return lambda reply: f"{thought}```json\n{reply}\n```\n"
            case 1:
                return lambda reply: thought + json.dumps(json.loads(reply), indent=2) + "\n"
            case _:
                return lambda reply: thought + reply
    opening, closing = draw.choice(_OPENINGS), draw.choice(_CLOSINGS)
    if form == "patch in prose":
        closing = "\n" + closing.lstrip("\n") if closing else ""
    return lambda reply: f"{thought}{opening}{reply}{closing}"


def labelled(draw: Random, path: str, text: str) -> str:
    """A whole file in a fence below a line that names it, or with its path in its first line."""
    fence = "```" if "```" not in text else "````"
    language = draw.choice(("", path.rpartition(".")[2]))
    opening, closing = draw.choice(_OPENINGS), draw.choice(_CLOSINGS)
    if path.endswith((".py", ".sh")) and draw.random() < 0.1 and not text.startswith("#!"):
        body = f"{fence}{language}\n# {path}\n{text}{fence}\n"
    else:
        blank = draw.choice(("\n", "\n\n"))
        body = f"{draw.choice(LABELS).format(path)}{blank}{fence}{language}\n{text}{fence}\n"
    return f"{opening.rstrip()}\n\n{body}{closing}".lstrip("\n") if opening else body + closing

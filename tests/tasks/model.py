"""A scripted model that errs as models do: wrong paths, stale text, broken JSON, cut replies, careless code.

It knows the words of the person and how to change a text that it recognises. Everything else it has from the requests
that it gets: no path, no name of a file and no answer of the program is written here or in the tasks.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.strict.reply import Call, Part, Reply, Say, View

from tests.tasks.task import Skill, Task

#: How a model is wrong about a name, how the text of an edit is wrong, and what goes wrong on the way.
NAMES = ("right", "folder", "case", "plural", "ending", "missing")
TEXTS = ("exact", "indent", "numbers", "comment", "diff", "whole", "stale")
REPLIES = ("whole", "comma", "newlines", "unclosed", "fenced", "length", "dropped")
#: Requests of one message after which it gives up.
PATIENCE = 9
_FILES = re.compile(r'^\{"type": "read_files".*\}$', re.MULTILINE)
_BUNDLED = re.compile(r"^### (\S+) \(.*\)\n(?:[^\d\n].*\n)?((?:\d+: ?.*(?:\n|\Z))+)", re.MULTILINE)
_FOUND = re.compile(r"^([^\s:][^:\n]*):\d+: ?(.*)$", re.MULTILINE)
_APPLIED = re.compile(r"^\| (\S+) \|.*\| ⚠️ Yes \(turn \d+\)", re.MULTILINE)
_GONE = re.compile(r"^\| (\S+) \|.*\| (?:⚠️ )?deleted", re.MULTILINE)
_NUMBERS = re.compile(r"^\d+: ?", re.MULTILINE)
_PAYLOAD = re.compile(r"<user_query>\n(.*?)\n</user_query>", re.DOTALL)


@dataclass
class ScriptedModel:
    """Decides each reply; the same seed and the same requests give the same replies."""

    tasks: Sequence[Task]
    seed: int
    #: The texts that it saw last, by path, and those before its own changes.
    seen: dict[str, str] = field(default_factory=dict)
    older: dict[str, str] = field(default_factory=dict)
    #: Called with the path of a file that was read, before the reply that changes it: a person who works beside.
    meddle: Callable[[str], None] = lambda _: None
    errors: list[str] = field(default_factory=list)
    requests: int = 0
    _read: set[str] = field(default_factory=set)
    _task: Task | None = None
    _asked: int = 0
    _looked: int = 0
    _messages: int = 0
    _planned: bool = False
    #: The texts of its own last changes, and those that they began from.
    _wrote: dict[str, str] = field(default_factory=dict)
    _began: dict[str, str] = field(default_factory=dict)
    _proposed: int = 0
    _found: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, view: View) -> Reply:
        self.requests += 1
        texts = [*_texts(view.body)]
        self._begin([said for text in texts for said in _PAYLOAD.findall(text)])
        self._read_all(texts)
        if not view.tools and "You choose which files" in view.system:
            self._planned = True
            return Reply((Say(json.dumps({"actions": self._plan()})),))
        if self._task is None:
            return self._reply(view, "There is nothing to do.", {})
        self._asked += 1
        missing = [skill for skill in self._task.skills if not self._paths(skill)]
        if missing and self._asked < PATIENCE:
            return self._look(view, missing)
        if missing:
            return self._reply(view, f"Please share the file with {missing[0].word}.", {})
        return self._propose(view)

    def _begin(self, said: Sequence[str]) -> None:
        """A message of the person that is a task begins it; one that says `continue` goes on with it."""
        known = {task.prompt: task for task in self.tasks}
        messages = [text for text in said if text in known or text == "continue"]
        new = next((known[text] for text in reversed(messages) if text in known), None)
        if new is not None and new is not self._task:
            self._task, self._found, self._proposed = new, [], 0
            self._began, self._planned = {}, False
            index = self.tasks.index(new)
            made = Random(f"{self.seed}:{new.name}")
            self._random = made
            self._name = NAMES[(index + self.seed) % len(NAMES)]
            self._text = TEXTS[(index + self.seed + made.randrange(2)) % len(TEXTS)]
            self._form = made.choice(REPLIES)
            self._careless = made.random() < 0.7
            self._searches = made.random() < 0.4
        elif len(messages) == self._messages:
            return
        self._messages = len(messages)
        self._asked = self._looked = 0
        self._proposed = min(self._proposed, 1)

    def _read_all(self, texts: Sequence[str]) -> None:
        for text in texts:
            if text in self._read:
                continue
            self._read.add(text)
            for found in _FILES.findall(text):
                for file in json.loads(found)["files"]:
                    if "content" in file:
                        self._keep(file["path"], file["content"])
            for path, content in _BUNDLED.findall(text):
                self._keep(path, content.rstrip("\n"))
            for path in _APPLIED.findall(text):
                if path in self._wrote and path not in self._shown(text):
                    self.seen[path] = self._wrote[path]
            for path in _GONE.findall(text):
                self.seen.pop(path, None)
            if "SEARCH RESULTS" in text:
                self._found += _FOUND.findall(text)

    @staticmethod
    def _shown(text: str) -> set[str]:
        """The paths whose content is in a text."""
        files = [file for found in _FILES.findall(text) for file in json.loads(found)["files"]]
        return {file["path"] for file in files if "content" in file}

    def _keep(self, path: str, numbered: str) -> None:
        text = _NUMBERS.sub("", numbered) + "\n"
        if self.seen.get(path, text) != text:
            self.older[path] = self.seen[path]
        self.seen[path] = text

    def _paths(self, skill: Skill) -> list[str]:
        """The files in view that the skill is about."""
        ends = skill.glob.rpartition("*")[2]
        return [
            path
            for path, text in (self.seen | self._began).items()
            if skill.recognises(text)
            and path.startswith(skill.glob.partition("*")[0])
            and path.endswith(ends)
        ]

    # Looking for files

    def _plan(self) -> list[dict[str, Any]]:
        return [self._action(skill) for skill in (self._task.skills if self._task else ())]

    def _action(self, skill: Skill) -> dict[str, Any]:
        if skill.glob:
            return {
                "type": "file",
                "name": f"All of {skill.word}",
                "patterns": [skill.glob],
                "all": True,
                "required": True,
            }
        folder, _, name = skill.guess.rpartition("/")
        stem, _, ending = name.partition(".")
        wrong = {
            "folder": [f"lib/core/{name}", f"**/{name}"],
            "case": [f"**/{stem.title().replace('_', '')}.{ending}"],
            "plural": [f"**/{stem}s.{ending}", f"**/{stem}/*.{ending}"],
            "ending": [f"**/{stem}.txt", f"**/{stem}.jsx"],
            "missing": [f"src/{stem}_impl.{ending}"],
        }.get(self._name, [])
        if wrong:
            self.errors.append(f"name: {self._name}")
        patterns = [*wrong, f"**/{folder}/{name}" if folder else f"**/{name}", f"**/*{stem}*"]
        return {
            "type": "file",
            "name": f"{skill.word} ({name})",
            "patterns": list(dict.fromkeys(patterns))[:5],
            "reason": f"It has {skill.word}.",
            "required": True,
        }

    def _look(self, view: View, missing: Sequence[Skill]) -> Reply:
        """Guess, then search, then read what was found."""
        self._looked += 1
        candidates = [path for path in self._candidates(missing) if path not in self.seen]
        if candidates:
            return self._reply(view, "", {"files": [self._exact(path) for path in candidates[:8]]})
        in_vain = self._searches and self._looked == 2 and not self._found
        if ((self._looked == 1 and not self._searches) or in_vain) and not self._planned:
            actions = [self._action(skill) for skill in missing]
            if self._name == "missing":
                self.errors.append("a file that is not there")
                extra = {"type": "file", "name": "How to contribute", "patterns": ["docs/CONTRIBUTING.md"]}
                actions.append({**extra, "required": False, "fallbackAction": "skip"})
            return self._reply(view, "", {"files": actions})
        words = list(dict.fromkeys(skill.word for skill in missing))
        return self._reply(view, "", {"searches": words[:4]})

    def _candidates(self, missing: Sequence[Skill]) -> list[str]:
        sure = [path for path, line in self._found if any(_same(skill.seen, line) for skill in missing)]
        words = [skill.word.lower() for skill in missing]
        rest = [path for path, line in self._found if any(word in line.lower() for word in words)]
        return list(dict.fromkeys([*sure, *rest]))

    def _exact(self, path: str) -> dict[str, Any]:
        """A path that was found, which a model sometimes remembers without its first folder."""
        name = path.rpartition("/")[2]
        patterns = [path, f"**/{name}"]
        if self._name == "folder" and path.count("/") > 1:
            self.errors.append("path: a folder is missing")
            patterns = [path.partition("/")[2], path]
        return {"type": "file", "name": name, "patterns": patterns, "required": True}

    # Changing files

    def _propose(self, view: View) -> Reply:
        assert self._task is not None
        first, self._proposed = self._proposed == 0, self._proposed + 1
        if self._proposed > 5:
            return self._reply(view, "I cannot do more.", {})
        careless = first and self._careless and any(skill.slip for skill in self._task.skills)
        if careless:
            self.errors.append("code: careless")
        if new := {path for path in self.seen if path not in self._began}:
            self._began |= {path: self.seen[path] for path in new}
        changes, texts = [], {}
        for skill in self._task.skills:
            for path in self._paths(skill):
                before = texts.get(path, self._began[path])
                after = skill.changed(before, careless=careless)
                if skill.deletes and path in self.seen:
                    changes.append({"path": path, "delete": True})
                elif after != before:
                    texts[path] = after
        texts = {path: text + self._beside(path) for path, text in texts.items()}
        texts = {path: text for path, text in texts.items() if text != self.seen.get(path)}
        self._wrote |= texts | dict(self._task.creates)
        wrong = self._text if first else "exact"
        if careless and wrong == "stale":
            wrong = "exact"
        if texts and wrong != "exact":
            self.errors.append(f"text: {wrong}")
        changes += [self._change(path, after, wrong) for path, after in texts.items()]
        changes += [
            {"path": path, "content": text}
            for path, text in self._task.creates.items()
            if self.seen.get(path) != text
        ]
        if not changes:
            return self._reply(view, "It is done.", {})
        if wrong == "stale":
            for path in texts:
                self.meddle(path)
        return self._reply(
            view,
            f"Does it: {self._task.name}.",
            {"changes": changes},
            broken=self._form if first else "whole",
        )

    def _beside(self, path: str) -> str:
        """Lines at the end of a file that neither the repository nor the model had."""
        now = self.seen.get(path, "")
        own = [text for text in (self._began[path], self._wrote.get(path, "")) if now.startswith(text)]
        return now[max(map(len, own)) :] if own else ""

    def _change(self, path: str, after: str, wrong: str) -> dict[str, Any]:
        before = self.seen[path]
        if wrong == "whole":
            return {"path": path, "content": after}
        if wrong == "diff":
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="", n=2
            )
            text = "\n".join(lines)
            return {
                "path": path,
                "diff": re.sub(r"^@@ -(\d+)", lambda at: f"@@ -{int(at[1]) + 7}", text, flags=re.MULTILINE),
            }
        return {
            "path": path,
            "edits": [
                {"search": _spoilt(old, wrong, self._random), "replace": new}
                for old, new in _edits(before, after)
            ],
        }

    def _reply(self, view: View, words: str, asks: Mapping[str, Any], broken: str = "whole") -> Reply:
        """The reply in the dialect of the request, damaged as `broken` says."""
        if broken != "whole":
            self.errors.append(f"reply: {broken}")
        if view.tools:
            return self._by_calls(words, asks, broken)
        fields: dict[str, Any] = {"summary": words or "Looks for files."}
        fields |= {"fileRequests": asks["files"]} if "files" in asks else {}
        fields |= (
            {"searches": [{"pattern": re.escape(word)} for word in asks["searches"]]}
            if "searches" in asks
            else {}
        )
        fields |= {"fileChanges": asks["changes"]} if "changes" in asks else {}
        text = _damaged(json.dumps(fields), broken)
        if broken == "fenced":
            text = f"I changed it as you asked:\n\n```json\n{json.dumps(fields, indent=2)}\n```\n"
        return Reply((Say(text),), **_ending(broken))

    def _by_calls(self, words: str, asks: Mapping[str, Any], broken: str) -> Reply:
        calls: list[Part] = [Say(words)] if words else []
        if "files" in asks:
            calls.append(Call("read_files", {"actions": asks["files"]}))
        calls += [Call("search_text", {"pattern": word}) for word in asks.get("searches", ())]
        if "changes" in asks:
            calls.append(Call("propose_changes", _damaged(json.dumps({"changes": asks["changes"]}), broken)))
        return Reply(tuple(calls), **_ending(broken))


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    """All texts of a request in their order, without those of the model."""
    for item in body.get("messages") or body.get("input") or ():
        if item.get("role") == "assistant" or item.get("type") == "function_call":
            continue
        content = item.get("content") if "content" in item else item.get("output")
        if isinstance(content, str):
            yield content
        else:
            yield from (part.get("text", "") for part in content or () if isinstance(part, dict))


def _same(seen: str, line: str) -> bool:
    """Whether a line of a search, which has no indentation, is the one that a skill recognises first."""
    return re.match(seen.split("(.|")[0].lstrip("^"), line) is not None


def _edits(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Search and replacement of each changed place, with enough lines around it to be the only one."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        room = 0 if a < b else 1
        while before.count("".join(old[max(0, a - room) : b + room])) != 1 and room < len(old):
            room += 1
        head, tail = old[max(0, a - room) : a], old[b : b + room]
        yield "".join([*head, *old[a:b], *tail]).rstrip("\n"), "".join([*head, *new[c:d], *tail]).rstrip("\n")


def _spoilt(search: str, wrong: str, made: Random) -> str:
    """The text of an edit as a model remembers it."""
    lines = search.split("\n")
    match wrong:
        case "indent":
            return "\n".join(
                line.replace("\t", "    ").removeprefix("    ") if len(lines) == 1 else line + " "
                for line in lines
            )
        case "numbers":
            first = made.randrange(1, 40)
            return "\n".join(f"{first + number}: {line}" for number, line in enumerate(lines))
        case "comment":
            return search.replace('"', "\u201d", 1) if '"' in search else search.replace(" = ", " =  ", 1)
    return search


def _damaged(text: str, broken: str) -> str:
    """JSON as models break it."""
    match broken:
        case "comma":
            return re.sub(r"\}\]", "},]", text, count=1)
        case "newlines":
            return text.replace("\\n", "\n")
        case "unclosed":
            return text.rstrip("}")
        case "length":
            return text[: max(40, len(text) * 3 // 4)]
    return text


def _ending(broken: str) -> dict[str, Any]:
    if broken == "length":
        return {"finish": "length"}
    return {"misbehave": frozenset({"error_in_stream"})} if broken == "dropped" else {}

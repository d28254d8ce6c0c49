"""Thoughts at the beginning of an answer, in the tags of local models: told apart while they come."""

from __future__ import annotations

import re

_AFTER = re.compile(r"(?:\s*(?:<\|(?:return|end|im_end|eot_id|eom_id)\|>|</s>))+\s*\Z")
_THOUGHT = re.compile(
    r"\s*(?:<(?P<tag>think|thinking|thought|reasoning)>|<\|channel\|>analysis<\|message\|>)"
)
_HEAD = re.compile(r"\s*(?:<\|start\|>assistant)?(?:<\|channel\|>(?:final|commentary)<\|message\|>)?")
_HEADS = (
    "<think>", "<thinking>", "<thought>", "<reasoning>", "<|channel|>analysis<|message|>",
    "<|start|>assistant<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>", "<|channel|>commentary<|message|>",
)  # fmt: skip
_HARMONY_END = re.compile(r"<\|end\|>|(?=<\|start\|>|<\|channel\|>)")
_LATER = re.compile(
    r"^[ \t]*<(?P<tag>think|thinking|thought|reasoning)>|(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>",
    re.MULTILINE,
)
_FINAL = re.compile(r"<\|end\|>(?:(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)<\|message\|>)?")
_LONGEST_END = 40
_UNOPENED_END = re.compile(r"</think(?:ing)?>[ \t]*(?:\r?\n|\Z)")


class ThoughtFilter:
    """Tells the thoughts at the beginning of an answer from the rest while it comes."""

    def __init__(self) -> None:
        self._held = ""
        self._ends: re.Pattern[str] | None = None
        self._begun = False
        self._thoughts: list[str] = []
        self._told = 0

    @property
    def thought(self) -> str:
        """What was thought so far."""
        return "".join(self._thoughts)

    def new_thought(self) -> str:
        """What was thought since this was asked the last time."""
        new, self._told = "".join(self._thoughts[self._told :]), len(self._thoughts)
        return new

    @property
    def unfinished(self) -> bool:
        """Whether the answer ended within a thought."""
        return self._ends is not None

    def feed(self, piece: str) -> str:
        """The answer in the piece, and in what was held back, without thoughts."""
        if self._begun:
            return piece
        self._held = (self._held + piece).removeprefix("\ufeff")
        passed = ""
        while True:
            if self._ends is not None:
                end = self._ends.search(self._held)
                if end is None:
                    self._thoughts.append(self._held[:-_LONGEST_END])
                    self._held = self._held[-_LONGEST_END:]
                    return passed
                self._thoughts.append(self._held[: end.start()])
                self._held, self._ends = self._held[end.end() :], None
            bare = self._held.lstrip()
            passed += self._held[: len(self._held) - len(bare)]
            self._held = bare
            opening = _THOUGHT.match(self._held.removeprefix("<|start|>assistant"))
            if opening is not None:
                tag = opening["tag"]
                self._ends = re.compile(f"</{tag}>") if tag else _HARMONY_END
                self._held = self._held.removeprefix("<|start|>assistant")[opening.end() :]
                continue
            if any(head.startswith(bare) for head in _HEADS):
                return passed  # it may still become one
            return passed + self.rest()

    def rest(self) -> str:
        """The answer in what is held back, when nothing more comes."""
        self._begun = True
        if self.unfinished:
            self._thoughts.append(self._held)
            self._held = ""
        held, self._held = self._held, ""
        head = _HEAD.match(held)
        return held[head.end() :] if head and head[0].strip() else held


def after_thought(text: str) -> tuple[str, str]:
    """A thought whose beginning is not in the answer, and what follows it without the signs that end an answer."""
    text, thought = _without_later(text)
    end = _UNOPENED_END.search(text)
    if end is not None:
        before = text[: end.start()]
        if "<think" not in before and before.count("```") % 2 == 0:
            thought, text = before + thought, text[end.end() :]
    return thought, without_end(text)


def _without_later(text: str) -> tuple[str, str]:
    """The answer without thoughts that begin in its middle and end, and these; what is in a fence is shown."""
    thoughts: list[str] = []
    kept: list[str] = []
    at = fences = 0
    while opening := _LATER.search(text, at):
        tag = opening["tag"]
        end = (
            re.compile(f"</{tag}>").search(text, opening.end()) if tag else _FINAL.search(text, opening.end())
        )
        if end is None:
            break
        before = text[at : opening.start()]
        fences += before.count("```")
        if fences % 2:
            kept.append(text[at : opening.end()])
            at = opening.end()
            continue
        kept.append(before)
        thoughts.append(text[opening.end() : end.start()])
        at = end.end()
    return ("".join([*kept, text[at:]]), "\n\n".join(thoughts)) if thoughts else (text, "")


def without_end(text: str) -> str:
    tail = text[-_LONGEST_END:]
    return text[:-_LONGEST_END] + _AFTER.sub("", tail) if ">" in tail else text

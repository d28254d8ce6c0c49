"""What is found in the prose of an answer, in order: changes, refusals by file, and sentences about no one file."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.answers import patches
from tui_agent.answers.blocks import Block
from tui_agent.answers.patches import Item
from tui_agent.answers.unified import Closes, Section
from tui_agent.answers.values import ChangeRequest, Refusal


class Findings:
    """`cut` says that the answer's end is missing: then what is not finished is only said, and not refused."""

    def __init__(self, cut: bool) -> None:
        self.cut = cut
        self.items: list[Item] = []
        #: Files of which something was not finished in a cut answer.
        self.dropped: set[str] = set()

    def say(self, sentence: str) -> None:
        self.items.append(sentence)

    def refuse(self, path: str, why: str) -> None:
        """Refuse a change: by its file where that is known."""
        self.items.append(Refusal(path, why))

    def unfinished(self, path: str, what: str) -> None:
        """Something that does not end, such as "the fenced block"."""
        if self.cut:
            whose = f" for {path}" if path else ""
            self.dropped.add(path)
            self.say(f"{what[:1].upper()}{what[1:]}{whose} was not finished and is dropped.")
        else:
            self.refuse(path, f"{what} was not finished")

    def sections(self, found: Sequence[Section], path: str = "") -> None:
        """The files of a patch; `path` is that of a diff that does not name its own."""
        for section in found:
            if section.path or section.fault:
                self.items.extend(patches.items([section], ChangeRequest("")))
            elif path:
                named = Section(
                    path, section.kind, section.body, section.rename_to, section.fault, section.note
                )
                self.items.extend(patches.items([named], ChangeRequest("")))
            else:
                self.refuse("", "a diff does not name its file")

    def envelope(self, lines: Sequence[str], at: int, closes: Closes | None) -> int:
        """The files of the envelope that line `at` opens; the line after it."""
        found, end, ended = patches.envelope(lines, at + 1, len(lines), closes=closes)
        if not ended:
            self.say(f"A patch in the answer does not end with {patches.END}; its last file is dropped.")
            last, found = found[-1:], found[:-1]
            self.dropped.update(one.path for one in last)
            if not self.cut:
                self.items.extend(
                    Refusal(one.path, f"its patch does not end with {patches.END}") for one in last
                )
        self.sections(found)
        return max(end, at + 1)

    def blocks(self, path: str, found: Sequence[Block]) -> None:
        """Blocks of one file as one change, or as the reason why none of them is taken."""
        fault = next((block.fault for block in found if block.fault), "")
        if not path:
            self.refuse("", "a SEARCH block does not name its file")
        elif found[-1].open:
            self.unfinished(path, "the SEARCH block")
        elif fault:
            self.refuse(path, f"a SEARCH block is not certain: {fault}")
        else:
            edits = tuple(block.edit for block in found if block.edit)
            self.items.append(ChangeRequest(path, edits=edits, fenced=True))

"""Refuses located edits, finds doubly escaped text, and explains edits without a match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from tui_agent.answers.values import EditHunk
from tui_agent.edits.source_text import ANCHOR, FEWEST, Match, SourceText, Span, cuts, hint, key, lines_from
from tui_agent.errors import EditFailed

_STRING = re.compile(r"\"(?:\\.|[^\"\\])*(?:\"|$)|'(?:\\.|[^'\\])*(?:'|$)|`(?:\\.|[^`\\])*(?:`|$)")
_ENTITY = re.compile(r"[\w)\]\"'-] ?&(?:lt|gt|amp);|&(?:lt|gt|amp);=|&amp;&amp;|&lt;&lt;|&gt;&gt;")
_QUOTE = re.compile(r"(?:^|[\s=(,\[{:+])&(?:quot|apos|#0?39|#0?34|#x27|#x22);")
#: An escaped line break outside strings, before indentation or next to an escaped quote.
_SURE_BREAK = re.compile(r"[\w:;{})\]]\\n\\t|\\n {2,}.*\\''|\\''.*\\n(?:$| )")
_BREAK = re.compile(r"\\n(?=\s{2,}|\\n|\s*$|[\w@#}\])])")
_REMARK = ("#", "//", "/*", "*", "--", "%", ";", "<!--")
_MOST_LINES = 20_000
#: Escape sequences are normal here.
_ORDINARY = (
    *(".html", ".htm", ".xml", ".svg", ".xhtml", ".vue", ".svelte", ".astro", ".jsx", ".tsx", ".xsl", ".php"),
    *(".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".tex", ".sty", ".cls", ".bib", ".ipynb", ".json"),
    *(".properties", ".po", ".pot", ".csv", ".tsv", ".log", ".patch", ".diff", ".resx", ".xaml", ".plist"),
    *(".erb", ".ejs", ".hbs", ".j2", ".jinja", ".tmpl", ".tpl", ".cshtml", ".razor", ".roff", ".l", ".lex"),
)


def escaped(path: str, base: str, new: str) -> str:
    """Returns an escape sequence in a new line outside strings, or "" if uncertain."""
    if ("\\n" not in new and "&" not in new) or path.lower().endswith(_ORDINARY):
        return ""
    there = set(base.split("\n"))
    lines = (line for line in new.split("\n") if ("\\n" in line or "&" in line) and line not in there)
    for line in islice(lines, _MOST_LINES):
        bare = line.lstrip()
        if bare.startswith(_REMARK) and not bare.startswith("#include"):
            continue
        code = _STRING.sub("''", line)
        if found := _ENTITY.search(code):
            return found[0][found[0].index("&") :].rstrip("=")
        if found := _QUOTE.search(code):
            return found[0][found[0].index("&") :]
        if len(_BREAK.findall(code)) > 1 or _SURE_BREAK.search(code):
            return "\\n"
    return ""


def unescaped(text: str) -> list[str]:
    """Returns possible texts before the extra escaping."""
    from html import unescape

    readings = (text.replace("\\n", "\n").replace('\\"', '"'), unescape(text))
    return [one for one in readings if one != text]


def check(source: SourceText, match: Match) -> None:
    """Refuses an edit already made, or with an uncertain effect on a line's end."""
    # The replacement may already surround the match
    new = match.hunk.new.strip("\n")
    span = match.span or Span(source.starts[match.first], source.starts[match.end], match.first)
    old = source.text[span.start : span.end]
    bare = old.strip("\n")
    if len(new) > len(bare) and any(map(str.isalnum, new)):
        start = span.start + len(old) - len(old.lstrip("\n"))
        end = start + len(bare)
        low, high = max(0, end - len(new)), min(len(source.text), start + len(new))
        at = source.text.find(new, low, high)
        while at >= 0:
            until = at + len(new)
            begins = not match.hunk.whole or at == 0 or source.text[at - 1] == "\n"
            ends = "\n" not in new or source.text[until : until + 1] in ("", "\n")
            if begins and ends and not cuts(source.text, at) and not cuts(source.text, until):
                raise already_done_reason(match.hunk, source.line_of(at))
            at = source.text.find(new, at + 1, high)
    # A line break only at the end of the search text may be the blank line that follows
    search, new = match.hunk.old, match.hunk.new
    if search.endswith("\n") and new and not new.endswith("\n"):
        after = match.end if match.span is None else source.line_of(match.span.end)
        if after < len(source.lines) and not source.stripped[after]:
            raise EditFailed(
                f"{match.hunk.name} ends with a line break and what replaces it does not: it is not certain whether"
                f" the blank line {after + 1} should go",
                "end both with a line break, or neither",
            )
    # The comma or semicolon after the match would be doubled, or alone on a line
    if match.span is None:
        return
    follows = source.text[match.span.end : match.span.end + 1]
    if follows not in (",", ";"):
        return
    search, new = (
        [line.rstrip()[-1:] for line in text.split("\n")] for text in (match.hunk.old, match.hunk.new)
    )
    alone = new[-1] == "" != search[-1]
    if alone or (new[-1] == follows != search[-1]) or (follows in new and follows not in search):
        raise EditFailed(
            f"{match.hunk.name} ends before a `{follows}` in line {match.end}, and what replaces it has "
            + ("a line break there" if alone else "one too"),
            "take it into the search text, or leave it out of the replacement",
        )


def check_tabs(source: SourceText, match: Match, text: str) -> None:
    """Refuses tabs in files indented only with spaces, except around code listings."""
    if "\n\t" in f"\n{text}" and source.has_blanks_only and "```" not in source.text + text:
        raise EditFailed(
            f"what replaces {match.hunk.name} is indented with tabs, and the file with spaces",
            "indent the new lines as the file does",
        )


def check_unmade(source: SourceText, wanted: EditHunk, matches: Sequence[Match]) -> None:
    """Refuses an inexact match if the replacement is already in the file."""
    lines = _worded(wanted.new.split("\n"))
    if lines and lines != _worded(wanted.old.split("\n")):
        for match in matches:
            if lines == _worded(source.lines[match.first : match.end]):
                raise already_done_reason(wanted, match.first)
    new = wanted.new.strip("\n")
    if sum(map(str.isalnum, new)) < (FEWEST if len(lines) == 1 else ANCHOR):
        return
    for at in source.every(new):
        line = source.line_of(at)
        whole = at == source.starts[line] and source.text[at + len(new) : at + len(new) + 1] in ("", "\n")
        if whole and not any(match.first <= line < match.end for match in matches):
            raise already_done_reason(wanted, line)


def _worded(lines: Sequence[str]) -> list[str]:
    return [bare for line in lines if (bare := line.rstrip())]


def check_announced(source: SourceText, hunk: EditHunk, matches: Sequence[Match]) -> None:
    line = hunk.line
    if line is None or any(match.first == line for match in matches):
        return
    apart = min(abs(match.first - line) for match in matches)
    for at in source.every(hunk.new, whole=True) if any(map(str.isalnum, hunk.new)) else ():
        made = source.line_of(at)
        if abs(made - line) <= apart and not any(match.first <= made < match.end for match in matches):
            raise already_done_reason(hunk, made)
    count = hunk.old.count("\n")
    there = source.keys(line, min(line + count, len(source.lines)))
    wanted = [key(text) for text in hunk.old.split("\n")[:-1]]
    said = sum(char.isalnum() for text in wanted for char in text)
    little = said < FEWEST and matches[0].rung not in ("exact", "line-endings")
    if little or (said and there == wanted):
        raise EditFailed(
            f"{hunk.name} is said to begin in line {line + 1}"
            + ("" if little else ", where lines are that differ from it in layout only,")
            + f" and is {'in another layout' if little else 'exactly'} in line {matches[0].first + 1}",
            "correct the line number, or copy the lines exactly from the file",
        )


def check_undone_within(source: SourceText, hunk: EditHunk, scope: tuple[int, int]) -> None:
    for line in range(*scope):
        if _is_at_line(source, hunk.new, line):
            raise already_done_reason(hunk, line)


def check_undone_at_end(source: SourceText, hunk: EditHunk, matches: Sequence[Match]) -> None:
    first = len(source.lines) - hunk.new.count("\n")
    if not any(match.end == len(source.lines) for match in matches) and _is_at_line(source, hunk.new, first):
        raise already_done_reason(hunk, first)


def _is_at_line(source: SourceText, new: str, line: int) -> bool:
    if not 0 <= line < len(source.lines) or not any(map(str.isalnum, new)):
        return False
    return source.text.startswith(new, source.starts[line])


def not_found_reason(source: SourceText, wanted: EditHunk) -> EditFailed:
    if any(text.strip() and text in source.text for text in unescaped(wanted.old)):
        return EditFailed(
            f"{wanted.name} is escaped once too often: the file has it with the characters themselves",
            "send it and what replaces it without `\\n` for line breaks and `&lt;` for `<`",
        )
    at = source.text.find(wanted.old) if wanted.old.strip() else -1
    if at >= 0:
        line = source.line_of(at)
        what = "part of a line" if wanted.whole else "part of a longer word"
        return EditFailed(
            f"{wanted.name} is in line {line + 1} only as {what}",
            "copy it exactly from the file\n" + lines_from(source, line, line + 1),
        )
    new = wanted.new.strip("\n")
    at = source.text.find(new)
    said = sum(char.isalnum() for char in new) >= FEWEST and new not in wanted.old
    if said and at >= 0 and not cuts(source.text, at) and not cuts(source.text, at + len(new)):
        return already_done_reason(wanted, source.line_of(at))
    return EditFailed(f"{wanted.name} is not in the file", hint(source, wanted.old))


def already_done_reason(wanted: EditHunk, line: int) -> EditFailed:
    return EditFailed(
        f"what {wanted.name} should become is already there, in line {line + 1}",
        "leave out what has been done, or quote more of the lines around it",
    )

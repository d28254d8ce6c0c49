"""Placeholder lines for omitted text, such as "rest unchanged" comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tui_agent.files.lazy_regex import late

_DOTS = r"(?:\.{3,}|…+|\. \. \.)"
_THING = (
    r"(?:the |your |all |this |of )*(?:file|code|class|function|method|implementation|module|content"
    r"|component|logic"
    r"|document|script|config|page|template|section|table|list|imports?|methods|functions|tests"
    r"|handlers|definitions|routes|styles|fields|lines|body)s?"
)
_TAIL = (
    r"(?:here|above|below|unchanged|omitted|goes|stays?|remains?|(?:is|are) (?:the same|unchanged|as"
    r"|kept|omitted|here|left|not)|as|for|of|from|follows|etc)\b.{0,40}"
)
#: A phrase must fill the line, apart from punctuation.
_WORDS = (
    rf"(?:remains? |is |are |left |stays? |kept )?unchanged(?: {_THING})?|no changes?(?: (?:here"
    rf"|needed|below|above))?",
    rf"(?:{_THING} )?(?:is |are |remains? |stays? )*(?:the )?same as (?:before|above|original\w*"
    rf"|previous\w*|existing)",
    rf"(?:as|like) (?:before|above|in the original)|{_THING} (?:stays?|remains?|is|are|goes)(?: the)? "
    r"(?:same|unchanged|as before|here|as is|omitted)",
    rf"(?:keep |and |with )?(?:the )?(?:rest|remainder)(?: of)? {_THING}(?: {_TAIL}|(?: [^ ,]{{1,20}}){{0,2}})?"
    rf"|(?:the )?rest (?:is |remains |stays )?"
    r"(?:unchanged|omitted|as before|the same|here|follows|goes here)|rest of .{1,60} (?:unchanged"
    r"|as before|the same|here)",
    rf"(?:keep |all |the |your |other |with )*(?:existing|remaining|previous|original"
    rf"|unchanged) {_THING}(?: {_TAIL})?",
    rf"(?:all |the )*other {_THING} .{{0,30}}(?:unchanged|same|as before|here|omitted|stay|remain).{{0,20}}",
    r"snip(?:ped)?|cut(?: here)?|etc|and so on|truncated|omitted(?: .{0,40})?|(?:code|content"
    r"|lines) (?:omitted|truncated)"
    r"(?: .{0,40})?|keep (?:as is"
    r"|everything|the rest|existing)(?: (?:as is|unchanged|the same|as before|as it is))?|\d+ (?:more "
    r"|unchanged )*lines(?: .{0,30})?",
    r"(?:der )?rest (?:der|des) (?:datei|codes?|klasse|funktion|methoden?|seite|imports)(?: .{0,40})?"
    r"|(?:(?:der )?(?:restliche|bestehende|übrige)r? (?:code|.{2,20} )?)?(?:bleibt )?(?:unverändert|gleich|wie bisher)"
    r"|(?:bestehender|restlicher|übriger|vorhandener) code(?: .{0,30})?"
    r"|wie (?:zuvor|vorher|oben)|usw|ausgelassen|gekürzt",
    r"(?:le )?reste (?:du|de la|de l'|des) (?:fichier|code|classe|fonction|page|imports)(?: .{0,40})?|inchangée?s?"
    r"|comme (?:avant|ci-dessus)|code existant(?: .{0,30})?|sans changement",
    r"(?:el |o )?resto d(?:el?|o|a)(?: la)? (?:archivo|código|clase|función|arquivo|classe|função)(?: .{0,40})?"
    r"|sin cambios|igual que antes|código existente(?: .{0,30})?|sem alterações",
    r"(?:其余|其他|剩余|剩下|以下|上面|原有|现有|已有|之前).{0,16}(?:不变|相同|代码|省略|部分|一致)"
    r"|省略.{0,16}|保持(?:原样|不变)|不变|同上|(?:以下|残り|既存).{0,16}(?:同じ|変更なし|省略|そのまま|コード)",
    r"остальн\w+ (?:код|файл|часть|методы)\w*.{0,30}|без изменений|как (?:раньше|прежде|и было)",
)
_SAYS = late(rf"(?i)(?:{'|'.join(_WORDS)})")
#: Certain, even in a new file.
_SAYS_OF_OTHER = late(
    rf"(?i)(?:keep |all |the |your )*(?:existing|remaining|previous|unchanged) {_THING}(?: {_TAIL})?"
    rf"|(?:the )?rest of {_THING}(?: .{{0,60}})?"
)
_OTHERS = late(rf"(?i)(?:all |the )*other {_THING}")
_LEADER = (
    r"(?:#+!?|//+!?|/\*+|\*|<!--|--+(?:\[\[)?|;+|%+|\{/\*|\{#|\{\{!--|<%--|\"\"\"|'''|\(\*|\{-|REM\b|'|\.\.)"
)
_TRAILER = r"(?:\*/\}?|-->|--%>|\*\)|-\}|\"\"\"|'''|\]\]|#\}|--\}\})"
_COMMENT = late(rf"{_LEADER}[ \t]*(?P<text>.*?)[ \t]*{_TRAILER}?", re.IGNORECASE)
#: A whole body: `{ /* unchanged */ }`, `pass  # same as before`.
_BODY = late(
    rf".*?(?:[{{:][ \t]*|\bpass[ \t]*|{_DOTS}[ \t]*)(?P<leader>/\*|//"
    rf"|#)[ \t]*(?P<text>[^#/*]{{2,80}}?)[ \t]*(?:\*/[ \t]*\}}?[ \t;,)]*)?"
)
_BRACKETS = late(r"[<\[({]{1,2}[ \t]*(?P<text>[^<>\[\](){}=:;]{3,80}?)[ \t]*[>\])}]{1,2}[.;]?")
_RULED = late(r"[-=*~_ ✂8<>]{2,}[ \t]*(?P<text>\w[^-=*~]{1,60}?)[ \t]*[-=*~_ ✂8<>]{2,}")
_DOTTED = late(rf"{_DOTS}[ \t]*(?P<text>[^=;{{}}]{{2,80}}?)[ \t]*{_DOTS}?[ \t]*")
_ONLY_DOTS = late(rf"{_DOTS}[,;]?")
_SIGNS = " \t-–—=*~_.…()[]{}<>:!,;✂"
_LONGEST = 200
_OF_WORDS = (
    ".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".yml", ".yaml", ".tex", ".pyi", ".raku", ".po",
    ".csv",
)  # fmt: skip
_PYTHON = (".py", ".pyw", ".ipynb")


def placeholder(path: str, base: str | None, new: str) -> str:
    """Returns the first placeholder line, or "". Ignores lines already in the file, and dots that are valid
    code.
    """
    own = Counter(line.strip() for line in (base or "").splitlines())
    fresh = not any(own)
    lines = new.splitlines()
    now: Counter[str] | None = None
    for number in _suspects(lines):
        bare = lines[number].strip()
        if own[bare] and not _ONLY_DOTS.fullmatch(bare):
            continue
        if _suspects_omission(path, lines, number, fresh):
            if own[bare]:
                now = now or Counter(line.strip() for line in lines)
                if own[bare] >= now[bare]:
                    continue
            return bare
    return ""


#: Lower-case stems; each placeholder contains one. A fast filter.
_STEMS = (
    "...", ". . .", "unchanged", "no change", "same as", "as before", "as above", "like before", "rest",
    "remain", "existing", "previous", "original", "other", "snip", "cut", "etc", "and so on", "truncated",
    "omitted", "keep", "lines", "stay", "goes here", "wie ", "usw", "ausgelassen", "bestehend", "comme",
    "existant", "sans ch", "sin cambios", "igual", "existente", "sem alt", "inchang",
)  # fmt: skip
_OTHER_STEMS = ("…", "unverändert", "gekürzt", "остальн", "без изм", "как ", *"其剩以上原现已之省保不同残既")
_TOGETHER = 500


#: First characters, apart from inner comment signs and `REM`.
_BEGINS = frozenset("#/*<-;%{\"'(.[=~_✂8>…")
_MOST_SUSPECTS = 10_000


def _suspects(lines: Sequence[str]) -> Iterator[int]:
    left = _MOST_SUSPECTS
    for begin in range(0, len(lines), _TOGETHER):
        text = "\n".join(lines[begin : begin + _TOGETHER]).lower()
        stems = _STEMS if text.isascii() else (*_STEMS, *_OTHER_STEMS)
        there = [stem for stem in stems if stem in text]
        for number in range(begin, min(begin + _TOGETHER, len(lines))) if there else ():
            low = lines[number].strip().lower()
            if len(low) > _LONGEST or not _may_be_remark(low):
                continue
            if any(stem in low for stem in there):
                yield number
                left -= 1
                if not left:
                    return


def _may_be_remark(bare: str) -> bool:
    return bare[:1] in _BEGINS or "#" in bare or "/*" in bare or "//" in bare or bare[:3].lower() == "rem"


def _suspects_omission(path: str, lines: Sequence[str], number: int, fresh: bool) -> bool:
    bare = lines[number].strip()
    says = _SAYS_OF_OTHER if fresh else _SAYS
    if _ONLY_DOTS.fullmatch(bare):
        return not fresh and not _is_code(path, lines, number)
    if not fresh and _is_prose(path) and not bare.startswith(("<!--", "[", "(", "<", "…", "...")):
        return False
    if comment := _COMMENT.fullmatch(bare):
        text = comment["text"].strip(_SIGNS)
        dotted = not fresh and re.search(_DOTS, bare) is not None
        return bool(says.fullmatch(text) or (dotted and _OTHERS.fullmatch(text))) if text else dotted
    for form in (_BRACKETS, _RULED, _DOTTED):
        if (found := form.fullmatch(bare)) and says.fullmatch(found["text"].strip(_SIGNS)):
            return True
    body = None if fresh else _BODY.fullmatch(bare)
    if body is None:
        return False
    text = body["text"].strip(_SIGNS)
    return says.fullmatch(text) is not None or (not text and "..." in bare)


def is_remark(path: str, line: str) -> bool:
    bare = line.strip()
    if _is_prose(path) and bare.startswith("#"):
        return False
    return any(form.fullmatch(bare) for form in (_COMMENT, _BRACKETS, _RULED, _DOTTED, _ONLY_DOTS))


_HINTS = late(
    rf"(?i){_DOTS}|\b(?:unchanged|unmodified|untouched|omit(?:ted|s)?|elided|abbreviated|truncated|snip(?:ped)?|ditto|idem"
    r"|continu(?:es|ed)|as (?:is|before|above|usual)|rest|remainder|remain(?:s|ing)|existing|previous|original|same"
    r"|no changes?|and so (?:on|forth)|see above|und so weiter|bleibt|restlich\w*|bestehend\w*|übrige\w*|gekürzt|reste"
    r"|identique|resto|restante|igual|existente|esistente|rimane|invariat[ao]|mantém|resten|loput|reszta|eksisterende"
    r"|befintlig)\b|unver.nder|ausgelassen|inchang|existant|sin cambios|sem alter|inalterad|ongewijzigd|bestaande"
    r"|hetzelfde|bez zmian|istniej|aynı|mevcut|değişme|без измен|остал|существующ|прежн|oförändra|u[æe]ndre|ennalla"
    r"|giữ nguyên|còn lại|残り|変更なし|同様|同じ|既存|省略|나머지|기존|생략|동일|변경 없"
    r"|其余|其他|剩余|不变|现有|原有|已有|相同"
)
_MOST_WORDS = 8


def hints_at_more(path: str, line: str) -> bool:
    short = len(line) <= _LONGEST and _may_be_remark(line.strip()) and len(line.split()) <= _MOST_WORDS + 1
    return short and _HINTS.search(line) is not None and is_remark(path, line)


def _is_prose(path: str) -> bool:
    return path.lower().endswith(_OF_WORDS[:6])


def _is_code(path: str, lines: Sequence[str], number: int) -> bool:
    low = path.lower()
    if low.endswith(_OF_WORDS):
        return True
    if not low.endswith(_PYTHON):
        return False
    depth = _depth(lines[number])
    before = next((lines[at] for at in range(number - 1, -1, -1) if lines[at].strip()), "")
    after = next((lines[at] for at in range(number + 1, len(lines)) if lines[at].strip()), "")
    head = before.split("#", 1)[0].rstrip()
    if before.lstrip().startswith((">>>", "...")) or head.endswith(("(", "[", ",")):
        return True
    opens = head.endswith(":") and _depth(before) < depth
    told = head.endswith(('"""', "'''", '"', "'")) and _depth(before) == depth and depth > 0
    return (opens or told) and (not after or _depth(after) < depth)


def _depth(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())

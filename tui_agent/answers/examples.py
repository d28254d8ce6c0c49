"""Changes that an answer only shows (examples, history, formats), by the surrounding words and fences."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tui_agent.files.lazy_regex import late

# Words around a change are classified, not matched as phrases. Each class lists the most common words of the
# languages that models use.

_UNREAL = (
    r"\b(?:would|could|might|unless|perhaps|maybe|theoretically|in theory)\b|\b(?:you|one|we|they) can\b"
    r"|\b(?:had|should|were) (?:you|we|one|i|it|they)\b|\bmay (?:help|be|also|want|work)\b"
    r"|['’]d (?:have|be|also|rather|normally|write|do|use|go|say|put|like|answer|send|call)\b"
    r"|\b(?:like|such as|similar to) (?:the|this) ones?\b"
    r"|\bif (?:you|we|one|i|ever|needed|necessary)\b|^\W*(?:but |and |later,? |then )?if\b"
    r"|\b(?:könnte|würde|wäre|hätte|müsste|dürfte|falls)\w*"
    r"|\b(?:pourrai|aurai|serai|devrai|ferai)(?:t|s|ent|ons|ez)\b"
    r"|\b(?:podr[íi]a|ser[íi]a|habr[íi]a|poderia|teria|seria|potrebbe|sarebbe|avrebbe|potremmo|zou)\w*"
    r"|\bможно\b|\bбы\b|\b(?:można|mógłby|byłoby|olabilir|olurdu)\b|也可以|如果|もし|かもしれ|수도 있"
)
_SHOWS = (
    r"\b(?:samples?|hypothetic\w+|illustrat\w+|pseudo\w*|anti-?patterns?|variants?|made-up|e\.g|for instance)"
    r"|\b(?:an?|another|typical|bad|for|of|as|this|following|the \w+) examples?\b|^\W*(?:\w+ )?examples?\W*$"
    r"|\bexamples? of\b|\b(?:imagine|suppose|pretend|compared?|comparison|consider(?:ed|ing)?|think of|toyed)\b"
    r"|\b(?:describ|quot)(?:e|es|ed|ing)\b|\b(?:prefer|tutorial|suggest(?:s|ed)?|recommend\w*|in mind|sketch)\b"
    r"|\b(?:draft|snippet|book)\b|^\W*say you\b"
    r"|\b(?:notation|syntax|markers?|schema|idea|snippet shows)\b|\bformat (?:is|of|looks|for|has)\b|\bformat\W*$"
    r"|\b(?:reply|answer|response|call|output|message|json|edit) format\b|\b(?:be|is|are|one) (?:written|sent|given)\b"
    r"|\blooks? (?:\w+ )?(?:like|so|as)\b(?! a\b)|\bhow (?:such|not|to|that|an?|you)\b|\bis how\b"
    r"|(?<=\w )(?:like|as) (?:so|this|that)\W*$|\balong (?:these|those) lines\b|\balternativ\w*|\bfollow-up\b"
    r"|\b(?:autre|altra|otra|outra|andere) (?:possib|opci|opzi|optie|opç|option|möglich)\w*"
    r"|\banother (?:option|way|approach|possibility)\b|\bfor (?:reference|context|information|completeness)\b"
    r"|\bout of scope\b|\bby hand\b|\bas documented\b|\b(?:docs|documentation) (?:gives?|shows?|has|have)\b"
    r"|\bfor the record\b|\boption \w\b|\blet me (?:quote|show|know|explain|describe)\b"
    r"|\b(?:beispiel|exemple|ejemplo|exemplo|esempio|voorbeeld|przykład|örne[kğ]|exempel)\w*|\b\w{0,2}пример\w*"
    r"|\b(?:author|linter|compiler|logs?|readme|docs?|documentation|manual|tool|bisect|ci|pipeline|spec|article|blog|trace(?:back)?)\b"
    r".{0,40}\b(?:contains?|complain\w*|reports?|prints?|shows?|says?|said|proposed|points?|expects?|gives?)\b"
    r"|\btypical\b|\bin (?:this|the) protocol\b|\bthought experiment\b|\bcette forme\b|\bthis shape\b|^\W*reference\b"
    r"|^\W*what (?!i\b|we\b|is\b|needs?\b|changes\b)[\w ]{1,20}? (?:answered|calls?|wrote|says?|said)\b"
    r"|\bsieht (?!jetzt|nun|dann)(?:\w+ )?so aus\b|\bformato?\b(?= (?:è|é|es|ist)\b)"
    r"|形式です|格式是|형식은"
    r"|例です|例子|例如|示例|比如|譬如|参考|たとえば|例えば|예시|예를"
)
_NOT = (
    r"\b(?:not|never|nobody|no one|reject\w*|discard\w*|dropped it|decided against|tried|attempt\w*)\b"
    r"|\b(?:wrong|bad|naive|risky|buggy|tempting)\b"
    r"|\bleft (?:this|it|that) out\b|\bfailed to apply\b|\b\w+n['’]t\b"
    r"|^\W*(?:no|avoid|ignore|skip|instead of|rather than)\b"
    r"|\b(?:should|must|please) (?:avoid|ignore)\b|\binstead of (?:this|that)\b|\bno change was\b"
    r"|\b(?:nicht|niemals|kein\w*|falsch\w*|jamais|(?<!ik )pas|nunca|não|niet|geen|değil)\b|^\W*(?:não|non|ne|nie)\b"
    r"|\bne\b|\bno (?:se|lo|la|he|hice|apli\w*)\b|\bnie \w|\bне\b|没|未|不要|不是|错误|ません|なかった|않|지 마"
)
_HISTORY = (
    r"\b(?:commit|changelog|blame|upstream|maintainers?|stack overflow|mailing list|(?:pull|merge) request)\b"
    r"|\b(?:release notes|culprit|history|reviewer|colleague|they|somebody|someone|another branch|yours)\b"
    r"|\bother (?:projects|people)\b|\byou (?:pasted|posted|sent)\b|\bwas (?:reverted|rolled back)\b"
    r"|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|\bgit (?:log|diff|show|blame)\b|#\d+\b|\bHEAD\b"
    r"|\b(?:previous(?:ly)?|earlier|formerly|original(?:ly)?|old|older|ago|used to|back then|at (?:the|that) time)\b"
    r"|^\W*before\b|\bbefore\W*$|\b(?:yesterday|last (?:week|month|year|time|night)|first attempt)\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:january|february|march|april|june|july|august)\b"
    r"|\b(?:september|october|november|december)\b|\bv?\d+\.\d[\d.]*\b|\bversion \d|\bwhat changed\b"
    r"|\bthe (?:last|first|other|former) (?:version|change|commit|code|patch|release|model|session|edit|attempt)\w*"
    r"|\b(?:came|come|comes|started|appeared|arrived|landed|began|went) (?:with|from|in|when|by)\b"
    r"|\b(?:introduced|caused|broke|broken)\b|\bwhat (?:\w+ ){1,3}(?:did|changed|was)\b|\b(?:that was|did this)\b"
    r"|\b(?:früher|damals|gestern|vorher|alt(?:e|er|en|es)|précédent\w*|avant|ancien\w*|anterior\w*|antes)\b"
    r"|\b(?:viejo|antiguo|precedente|prima|vecchi\w*|vorige|vroeger|poprzedni\w*|önceki|eski|vino|entstand|kam)\b"
    r"|\b(?:раньше|прежде|предыдущ\w*|коммит\w*|стар\w+)\b|\bwcześniej\b|変更前|修改前|변경 전"
    r"|提交|以前|之前|原来|引入|コミット|이전|커밋"
)
_STEMS = (
    "add|fix|change|remove|delete|replace|update|rename|move|make|edit|apply|insert|pin|clamp|raise|return|wrap|append"
    "|create|write|revert|correct|switch|extend|adapt|bump|adjust|introduce|drop|swap|convert|handle|check|guard|pass"
    "|simplify|tighten|align|cache|split|restore|register|wire|shorten|extract|inline|use|do|keep|put|set|call|accept"
    "|define|implement|ensure|modify"
)
_VERBS = (
    rf"(?:{_STEMS})(?:s|es|d|ed|ing)?|appli(?:es|ed)|modifie[sd]|(?:pinn|dropp|wrapp|swapp|bump|splitt|sett|putt)(?:ed|ing)"
    r"|(?:mak|us|mov|writ|chang|remov|replac|updat|renam|clamp|cach|restor)ing|made|did|went|wrote|rewr(?:ote|ite)"
    r"|undid|undo|took|gave|kept|noticed|take|get|go"
)
_ACTS = (
    r"\b(?:i|we)(?:['’](?:ve|ll|m|re)| have| will| am| are)?"
    rf" (?:(?:now|also|just|therefore|going to|then|simply|only|already|gone ahead and|do the) )*(?:{_VERBS}|same)\b"
    r"|^\W*(?:(?:first|next|then|now|also|finally|please|so|but|and|therefore|okay|sure|to \w+ \w+|in x|let me"
    rf"|let['’]s)[,:]? )*(?:{_VERBS}|let)\b|\bnow\b|^\W*(?:next|finally|done)\b"
    rf"|\b(?:this|it|that|the (?:following )?(?:edit|change|fix|patch|diff)|with this \w+ it) (?:now |also |just "
    rf"|then )*(?:(?:{_STEMS})(?:s|es)|applies|logs)\b"
    rf"|\b(?:let me|let['’]s|so i) (?:{_VERBS})\b"
)
_ANNOUNCES = (
    r"\b(?:here|below|these|this|that|it)(?:['’]s| is| are|['’]re) (?:the|my|an?|what i)? ?(?:[\w-]+ ){0,2}"
    r"(?:changed?|fix|patch|edit|correction|update|version|diff|code|file|module|implementation|ended)s?\b"
    r"|^\W*(?:(?:the|my|your|a|all|just|so|small|complete|full|updated|corrected|proposed|first|second|next|one|two"
    r"|simplest|x) )*(?:edit|change|fix|patch|diff|correction|update|version|cleanup|line)s?\b"
    r"(?: (?:to|for|in|is|are) .*)?(?: \d of \d.*)?\W*$"
    r"|\bhere (?:it|they|you|we) (?:is|are|go)\b|\bneeds? (?:an?|the|this|to)\b|\bthis should (?:work|do)\b"
    r"|^\W*step\b|\bplease find\b|^\W*(?:hier|voici|aqu[íi]|ecco|вот|oto)\b"
    r"|\b(?:added|fixed|changed|removed|replaced|corrected|updated|renamed|moved|included|done)\W*(?: here)?\W*$"
    # The most common of these verbs in other languages, with "I".
    r"|\b(?:should|must|has to|have to)\b|\bx \w+s\b"
    r"|\b(?:ich|wir|jetzt|j['’]|je|nous|on|il faut|he|hemos|ho|abbiamo|ik|heb|я|мы)(?:\b|(?<=['’]))|我|已"
    r"|\b(?:ergänz|änder|ersetz|entfern|korrigier|behoben|angepasst|füge|hinzu|ajout|modifie[rz]|remplac|supprim|corrig"
    r"|añad|agreg|cambi|reemplaz|elimin|arregl|adicion|alterei|substitu|aggiun|sostitu|rimuov|correggi|toegevoegd|vervang"
    r"|gewijzigd|poprawi|doda|zmieni|usun|ekle|düzelt|değiştir|исправ|добав|замен|измен|удал)\w*"
    r"|添加|修复|修改|替换|删除|改成|改为|追加|修正|変更|置き換え|削除|추가|수정|변경|삭제"
    rf"|\b(?:is|are|gets?) (?:now |also |only )*(?:{_STEMS}|\w+)(?:ed|taken)\b"
)
_PROPOSES = (
    rf"\bi(?:['’]d| would)? (?:suggest|recommend|propose)\b(?!ed)|\bi(?:['’]d| would) (?:just |simply )?(?:{_STEMS})\b"
    rf"|\bhow (?:to|(?:you|we|i) (?:can|could)) (?:{_STEMS}|solve|refactor|resolve)\b"
    r"|\b(?:can|could) be (?:fixed|solved|done|resolved|achieved|avoided) (?:by|with)\b"
    r"|\b(?:following|this|these|with the) (?:small |minimal |simple )?(?:changes?|patch|edits?|diff|fix|updates?)\b"
    r"|\b(?:simplest|easiest|cleanest|best|correct|right|safest) (?:\w+ )?(?:is|would be) to\b"
    r"|\b(?:the|your|this|my) (?!\w*\W?(?:edit|block|diff|patch|call|reply|answer|format|response)\b)[\w`]+ "
    r"(?:function |method |class |file |code )?(?:now |should |should now |must |then )?looks? like\b"
    rf"|\b(?:forget|remember|need|have|want|has) to (?:also )?(?:{_STEMS})\b|\bas (?:you )?(?:asked|requested)\b"
    r"|\b(?:we|it|this) now\b|^(?:and |then )*(?:next|finally)\b|^\W*\w+ (?:it|them)\W*$"
)
_NOTHING_DONE, _SHOWN, _NEGATED, _BEFORE, _DONE, _ANNOUNCED, _PROPOSED = (
    late(f"(?i){words}") for words in (_UNREAL, _SHOWS, _NOT, _HISTORY, _ACTS, _ANNOUNCES, _PROPOSES)
)
_POINTS = late(r"(?i)\b(?:this|these|such|following|below|block|diff|patch|examples?)\b|这|この|это\w*")
#: Negations that negate nothing.
_COURTESY = late(r"(?i)\b(?:don['’]t (?=forget)|(?:not a|no) (?:problem|worries)\W*|no worries\W*)")
_VAGUE = late(
    r"(?i)\b(?:if (?:you|we|one|ever)|were it|examples?|samples?|alternativ\w*|illustrat\w*|suppose|imagine|have"
    r"|normally)\b"
)
_PRONOUN = late(r"(?i)^\W*(?:it|they|that|this|he|she)\b")
_UNDONE = late(
    r"(?i)(?:\b(?:not|never)|n['’]t)\b.{0,20}\b(?:appl|do\b|done|made|make|carr|sent|send|meant|execut|recommend|copy|use)"
)
_BELOW = late(
    r"(?i)^\W*(?:is|are|was|were|as|this|that|it|these|those|the (?:above|diff|edit|block|change|call|reply)"
    r"|zum beispiel|例如|例えば)(?![^\W_])"
)
_SENTENCES = late(r"(?<=[.!?])\s+|(?<=:)\s+(?=\w)|(?<=[。！？])")
_CLAUSES = late(r",\s+(?:so|but|and|then|therefore|yet|hence)?\s*|;\s+|\s+so\s+(?=i\b|we\b)|[；，]")
_SUBORDINATE = late(
    r"(?i)\s(?:that|which|who|because|since|when|while|although|as if|so that|in case|if|where|before|until)\s.*"
    r"|^\W*(?:because|since)\b.*"
)
_CODE = late(r"`[^`\n]*`|(?<![\w`])[\w.-]*[/\\][\w./\\-]*|\b[\w-]+\.[a-z]{1,5}\b(?![.(])")
_KEPT = late(r"`(?:git |[0-9a-f]{7,40}`)")
_WORD = late(r"[^\W\d_]+")
#: File labels, and the number of other words.
_LABELS = frozenset(
    {
        "file",
        "path",
        "filename",
        "datei",
        "fichier",
        "archivo",
        "arquivo",
        "plik",
        "bestand",
        "файл",
        "x",
        "in",
        "文件",
        "檔案",
    }
    | {"ファイル", "파일", "full", "complete", "step"}
)
_FEWEST, _SHORT = 6, 40
_MOST_SENTENCES = 4
_READ = 1_200
_COMMIT = late(r"(?m)^[ \t]*(?:commit [0-9a-f]{7,40}\b|Author:[ \t](?![12]\d{3}\b))")
_EDIT = late(r"(?m)^[ \t]*(?:diff --git |--- |@@|<{5,9} |\*\*\* )")
_LONGEST = 200
_FENCE = late(r"^[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[ \t]*([^\n]*)$", re.MULTILINE)
_LINE = late(r"[^\n]*\S[^\n]*")


def is_example(above: str, below: str = "") -> bool:
    """Whether the words mark a change as an example, not done, or history."""
    if classify_intro(above) is True:
        return True
    first_below = _SENTENCES.split(below[:_LONGEST])[0]
    if not _BELOW.search(first_below) or _DONE.search(first_below):
        return False
    return any(words.search(first_below) for words in (_NOTHING_DONE, _SHOWN, _UNDONE, _BEFORE))


def classify_intro(above: str) -> bool | None:
    """Returns True if the words above a change mark it as only shown, False if as intended. The last clause
    of the last sentence counts: "It must not be negative, so clamp it:" requests the change. A nearly
    empty sentence is combined with the previous one. A sentence that does not introduce the change counts
    only if it refers to it.
    """
    for sentence in _sentences(above[-_READ:]):
        verdict = _verdict(sentence)
        words = [word for word in _WORD.findall(sentence) if word.lower() not in _LABELS]
        is_label = len(words) < _FEWEST and sum(map(len, words)) < _SHORT
        if verdict is not None or not (is_label or _PRONOUN.search(sentence)):
            return verdict
    return None


def _sentences(above: str) -> Iterator[str]:
    """Yields sentences in reverse order, with code and file names as `x`. A blank line ends a sentence."""
    told = 0
    for paragraph in reversed(above.split("\n\n")):
        lines = [line.strip(" \t>*_#") for line in paragraph.split("\n") if line.strip(" \t`~>")]
        text = _CODE.sub(lambda code: code[0] if _KEPT.match(code[0]) else "x", " ".join(lines)).rstrip("`~ ")
        for sentence in reversed(_SENTENCES.split(text)):
            if _WORD.search(sentence):
                yield sentence
                told += 1
                if told == _MOST_SENTENCES:
                    return


def _verdict(sentence: str) -> bool | None:
    if sentence.rstrip(" \t*_)").endswith(("?", "？")):
        return True
    sentence = _COURTESY.sub("", sentence)
    if _PROPOSED.search(sentence) and not any(
        words.search(sentence) for words in (_NEGATED, _BEFORE, _VAGUE)
    ):
        return False
    clauses = [clause for clause in _CLAUSES.split(sentence) if _WORD.search(clause)] or [sentence]
    mains = [_SUBORDINATE.sub("", clause) for clause in clauses]
    last = next((number for number in range(len(mains) - 1, -1, -1) if mains[number].strip()), 0)
    if _DONE.search(mains[last]):
        return bool(_NOTHING_DONE.search(mains[last]) or _NEGATED.search(mains[last]))
    if _ANNOUNCED.search(clauses[last]):
        return _is_aside(clauses[last])
    if any(
        _DONE.search(main) and not (_NOTHING_DONE.search(main) or _NEGATED.search(main)) for main in mains
    ):
        return False
    leads = not sentence.rstrip(" \t*_)\"'”").endswith((".", "!", "。", "！"))
    speaks = leads or _POINTS.search(sentence) or sentence.count(" ") < 2
    return True if speaks and _is_aside(sentence) else None


def _is_aside(text: str) -> bool:
    return any(words.search(text) for words in (_NOTHING_DONE, _SHOWN, _NEGATED, _BEFORE))


def is_commit(above: str, fenced: str = "") -> bool:
    edit = _EDIT.search(fenced)
    return bool(_COMMIT.search(above) or (edit and _COMMIT.search(fenced, 0, edit.start())))


def surrounding_text(text: str, begin: int, end: int, floor: int = 0) -> tuple[str, str]:
    """Returns the text above (from `floor`, limited) and the first line below, without fences."""
    above = text[max(floor, begin - _READ) : begin]
    for found in _LINE.finditer(text, end, end + _READ):
        if found[0].strip(" \t`~"):
            return above, found[0].strip()
    return above, ""


class Fences:
    def __init__(self, text: str) -> None:
        self._text = text
        self.quoted = False
        self._begins: list[int] = []
        self._ends: list[tuple[int, int]] = []
        self._more = self._found()

    def _found(self) -> Iterator[int]:
        text, opened = self._text, None
        for found in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
            if opened is None:
                if "`" not in found[2]:
                    opened = found
            elif found[1][0] == opened[1][0] and len(found[1]) >= len(opened[1]) and not found[2].strip():
                yield self._add(opened, found.end())
                opened = None
        if opened is not None:
            yield self._add(opened, len(text))

    def _add(self, opened: re.Match[str], end: int) -> int:
        self._begins.append(opened.start())
        self._ends.append((opened.end(), end))
        return end

    def quotes(self, at: int) -> bool:
        quoted = self.holds(at)
        self.quoted = self.quoted or quoted
        return quoted

    def holds(self, at: int) -> bool:
        """Like `quotes`, for a place without an executable item."""
        if not self._ends or self._ends[-1][1] <= at:
            next((end for end in self._more if end > at), None)
        number = bisect_right(self._begins, at) - 1
        if number >= 0 and self._begins[number] < at < self._ends[number][1]:
            return bool(self._text[self._ends[number][0] : at].strip(" \t\r\n["))
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line.count("`") % 2 == 1

"""References to files in a request, and chains of patterns for them.

References are paths, names, tracebacks, globs and phrases for many files.

`find_references` analyzes syntax only; the index determines the meaning. Order of a chain: exact path,
name anywhere, near the named folder, name with another extension, part of the name anywhere; each name in
all common spellings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import Struct

from tui_agent.answers.plans import MAX_PATTERNS
from tui_agent.workspace.index import Index, Matches
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern, escape

ReferenceKind = Literal["mention", "traceback", "glob", "alias", "path", "name", "module", "quoted", "word"]
#: Only the beginning and the end of a request are searched: pasted logs can be large.
HEAD: Final = 20_000
TAIL: Final = 10_000

_NAME: Final = r"[\w.@+()\[\]$-]"
_EMPHASIS: Final = re.compile(
    r"(?<![\w*/.])(\*{1,3})(?=[^\s*/.])([^*\n]{1,300}?)(?<=[^\s*/])\1(?![\w*/]|\.\w)"
)
_FENCE: Final = re.compile(r"^(```+|~~~+).*?(?:^\1`*\s*$|\Z)", re.DOTALL | re.MULTILINE)
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_TRACE: Final = (
    re.compile(r'\bFile "([^"\n]{1,1000})", line \d+'),
    re.compile(r"\bat (?:[^()\n]{1,200} )?\(?([^\s():]{1,500}\.\w{1,8}):\d+(?::\d+)?\)?"),
    re.compile(r"--> ([^\s:]{1,500}\.\w{1,8}):\d+:\d+"),
    re.compile(r"(?<![\w/:.])((?:[A-Za-z]:)?[\w./\\@+-]{1,500}\.[A-Za-z]\w{0,7}):\d+(?::\d+)?"),
)
_RULES: Final[tuple[tuple[ReferenceKind, re.Pattern[str]], ...]] = (
    ("mention", re.compile(r'(?<![\w@])@"([^"\n]{1,500})"')),
    ("alias", re.compile(rf"(?<![\w@])@/({_NAME}+(?:/{_NAME}+)*)")),
    ("mention", re.compile(rf"(?<![\w@])@({_NAME}+(?:/{_NAME}*)*)")),
    ("glob", re.compile(r"(?<![\w*/.])((?:[\w.@+-]+/|\*\*?/|\./)*[\w.*?{},@+\[\]-]*\*[\w.*?{},@+\[\]/-]*)")),
    ("quoted", re.compile(r"`([^`\n]{1,500})`")),
    ("quoted", re.compile(r'"([^"\n]{1,500})"')),
    ("quoted", re.compile(r"“([^”\n]{1,500})”")),
    ("quoted", re.compile(r"(?<!\w)'([^'\n]{1,500})'(?!\w)")),
    ("path", re.compile(rf"(?<![\w@.])((?:\.{{1,2}}/|~?/)?(?:{_NAME}+/)+{_NAME}*)")),
    ("path", re.compile(r"(?<![\w\\])((?:[\w.-]+\\)+[\w-]+\.\w{1,8})(?!\w)")),
    ("name", re.compile(r"(?<![\w/.@-])(\.?[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{0,7})(?![\w/(-])")),
    ("module", re.compile(r"(?<![\w/.@-])([A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+)(?![\w/])")),
    ("word", re.compile(r"(?<![\w.@/-])(\.?[A-Za-z_][\w]*(?:-\w+)*)(?![\w/])")),
)


class Reference(Struct, frozen=True):
    kind: ReferenceKind
    text: str
    at: int


class MaskedText:
    """Blanks processed parts, so that each is read once."""

    def __init__(self, text: str) -> None:
        self.text = text if len(text) <= HEAD + TAIL else text[:HEAD] + "\n" + text[-TAIL:]

    def take(
        self, expression: re.Pattern[str], keep: Callable[[re.Match[str]], bool] | None = None
    ) -> list[re.Match[str]]:
        found = [match for match in expression.finditer(self.text) if keep is None or keep(match)]
        pieces, end = [], 0
        for match in found:
            pieces += [self.text[end : match.start()], " " * (match.end() - match.start())]
            end = match.end()
        self.text = "".join([*pieces, self.text[end:]])
        return found


def find_references(masked: MaskedText) -> list[Reference]:
    """In the order of the text. In fenced blocks, only tracebacks count."""
    references: list[Reference] = []
    for expression in _TRACE:
        found = masked.take(expression)
        references += [Reference("traceback", match[1], match.start()) for match in found]
    masked.take(_FENCE)
    masked.take(_URL)
    masked.text = _EMPHASIS.sub(
        lambda found: f"{' ' * len(found[1])}{found[2]}{' ' * len(found[1])}", masked.text
    )
    for kind, expression in _RULES:
        for match in masked.take(expression, _is_glob if kind == "glob" else None):
            text = match[1] if kind == "quoted" else _trimmed(match[1])
            if text:
                references.append(Reference(kind, text, match.start()))
    return sorted(references, key=lambda reference: reference.at)


def _is_glob(match: re.Match[str]) -> bool:
    """Excludes `*emphasis*` and `a * b`: a glob has a folder or an extension beside its star."""
    text = match[1]
    if re.fullmatch(r"\*{1,3}[^*/]+\*{1,3}[.,;:!?]?", text):
        return bool(re.fullmatch(r"\*[\w.-]*\.[\w*]+", text))
    if "**" in text and "/" not in text:
        return bool(re.search(r"\*\.\w", text))
    return "/" in text or bool(re.search(r"\*[\w-]*\.\w|\w\.\*|\w\*|\*\w", text))


def _trimmed(text: str) -> str:
    text = text.rstrip(".,;:!?")
    for opening, closing in ("()", "[]", "{}"):
        while text.endswith(closing) and text.count(closing) > text.count(opening):
            text = text[:-1].rstrip(".,;:!?")
        if text.startswith(opening) and text.count(opening) > text.count(closing):
            text = text[1:]
    return text


IsFolder = Callable[[str], bool]

_FOLDER: Final = r"[`\"']?(?P<folder>\.?[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*/?)[`\"']?"
_FOLDER_WORD: Final = r"(?:\s+(?:folder|directory|dir|package))?"
_ALL: Final = r"\b(?:all|every|each|any)\b(?:\s+(?:one\s+)?of)?(?:\s+(?:the|our|my|these))?"
_NOUN: Final = r"(?:files?|scripts?|modules?|documents?|pages?|sources?|code|components?|configs?|examples?)"

_BY_WORD: Final = {
    "bash": "sh",
    "c": "{c,h}",
    "c++": "{cc,cpp,cxx,hpp,hh,h}",
    "css": "{css,scss,sass,less}",
    "go": "go",
    "html": "{html,htm}",
    "java": "java",
    "javascript": "{js,jsx,mjs,cjs}",
    "js": "{js,jsx,mjs,cjs}",
    "json": "json",
    "kotlin": "{kt,kts}",
    "markdown": "{md,markdown,mdx}",
    "md": "md",
    "php": "php",
    "python": "{py,pyi}",
    "ruby": "rb",
    "rust": "rs",
    "shell": "{sh,bash,zsh}",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "ts": "{ts,tsx}",
    "typescript": "{ts,tsx}",
    "xml": "xml",
    "yaml": "{yaml,yml}",
    "yml": "{yaml,yml}",
}
_TYPE: Final = r"(?P<type>\*?\.\w{1,8}|" + "|".join(re.escape(word) for word in _BY_WORD) + r")"
TEST_NAMES: Final = "{test_*,*_test,*.test,*.spec,*_spec,*Test,*Tests}.*"

_EVERYTHING_IN: Final = re.compile(
    rf"(?:{_ALL}(?:\s+(?P<what>[\w.*+#-]+(?:\s+[\w.*+#-]+){{0,2}}?))?|\beverything|\bthe\s+(?P<what2>\w+\s+)?{_NOUN})"
    rf"(?:\s+that\s+(?:is|are))?\s+(?:in|under|inside|within|below|from|of)\s+(?:the\s+)?{_FOLDER}{_FOLDER_WORD}(?![\w/])",
    re.IGNORECASE,
)
_ALL_OF_TYPE: Final = re.compile(rf"{_ALL}\s+{_TYPE}(?:\s+{_NOUN}|s)?(?!\w)", re.IGNORECASE)
_ALL_TESTS: Final = re.compile(
    rf"(?:{_ALL}|\b(?:whole|entire|full|complete)\b)\s+(?:unit\s+|integration\s+)?tests?(?:\s+(?:files?|suite))?\b(?!\s+(?:for|of)\b)",
    re.IGNORECASE,
)
_TESTS_FOR: Final = (
    re.compile(
        r"\b(?:unit\s+)?(?:tests?|specs?)\s+(?:for|of|covering)\s+(?:the\s+)?[`\"']?(?P<name>[\w./@-]*\w)",
        re.I,
    ),
    re.compile(r"(?<![\w./@-])(?P<name>[\w./@-]*\w)['’]s\s+(?:unit\s+)?tests?\b", re.I),
)
_ASKED: Final = (
    r"(?:\b(?:list|ls|show)(?:\s+me)?(?:\s+(?:all|the|every|all\s+the))*\s+(?:files|contents?|entries|folders)|\bls|"
    r"\bwhat(?:(?:'s|’s|\s+is|\s+are)|\s+(?:other\s+)?(?:files|modules|scripts|things)(?:\s+(?:are|is|do\s+we\s+have))?)"
    r"(?:\s+there)?)"
)
_WHAT_IS_IN: Final = re.compile(
    rf"{_ASKED}(?:\s+(?:in|under|inside|within|of|below))?\s+(?:the\s+)?{_FOLDER}{_FOLDER_WORD}(?![\w/])",
    re.IGNORECASE,
)
_THE_FOLDER: Final = re.compile(rf"\b(?:the|our|my)\s+{_FOLDER}\s+(?:folder|directory|dir)\b", re.IGNORECASE)


class BatchPhrase(Struct, frozen=True):
    """Files below `folder` (empty: anywhere) matching `names`."""

    text: str
    folder: str
    names: str
    at: int


class TestsFor(Struct, frozen=True):
    text: str
    name: str
    at: int


class FolderPhrase(Struct, frozen=True):
    path: str
    recursive: bool
    at: int


def find_many(masked: MaskedText, is_folder: IsFolder) -> tuple[list[BatchPhrase], list[FolderPhrase]]:
    """Folder phrases count only if `is_folder(name)` is true."""

    def about_a_folder(match: re.Match[str]) -> bool:
        return is_folder(_folder(match))

    asked = masked.take(_WHAT_IS_IN, about_a_folder)
    batches = [
        BatchPhrase(
            _text(match), _folder(match), _names(match["what"] or match["what2"] or ""), match.start()
        )
        for match in masked.take(_EVERYTHING_IN, about_a_folder)
    ]
    batches += [BatchPhrase(_text(match), "", TEST_NAMES, match.start()) for match in masked.take(_ALL_TESTS)]
    batches += [
        BatchPhrase(_text(match), "", _names(match["type"]), match.start())
        for match in masked.take(_ALL_OF_TYPE)
    ]
    asked += masked.take(_THE_FOLDER, about_a_folder)
    recursive = bool(re.search(r"\brecursive", masked.text, re.IGNORECASE))
    return batches, [FolderPhrase(_folder(match), recursive, match.start()) for match in asked]


def find_tests_for(masked: MaskedText) -> list[TestsFor]:
    """Does not blank the name, which is a reference too."""
    return [
        TestsFor(_text(match), match["name"], match.start())
        for expression in _TESTS_FOR
        for match in expression.finditer(masked.text)
    ]


def _folder(match: re.Match[str]) -> str:
    return match["folder"].rstrip("/.")


def _text(match: re.Match[str]) -> str:
    return " ".join(match[0].split())


def _names(what: str) -> str:
    for word in reversed(what.lower().split()):
        if word.startswith(("*.", ".")):
            return "*." + word.rpartition(".")[2]
        if word in ("test", "tests"):
            return TEST_NAMES
        if word in _BY_WORD:
            return f"*.{_BY_WORD[word]}"
    return "*"


_ENTRY_FILES: Final = "{__init__,index,mod,main}"
_SHORTEST_PART: Final = 3
#: A pattern with more matches is too broad.
MOST_IN_CHAIN: Final = 20


def chain_for_path(path: str, index: Index) -> tuple[str, ...]:
    folder, _, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem = stem or name
    # an existing path is looked up before its text is read as a pattern
    patterns = [path, f"**/{escape(name)}"]
    if len(stem) < _SHORTEST_PART:
        return _first(patterns)
    ending = f".{escape(extension)}" if dot and stem != name else ""
    while folder and not index.has_folder(folder):
        folder = folder.rpartition("/")[0]
    near = folder
    patterns += [f"{escape(near)}/**/*{escape(stem)}*{ending}"] if near else []
    patterns += [f"**/{one_of([escape(spelling) for spelling in spellings(stem)])}.*"]
    # The last resort: the stem in a file name, otherwise its parts in the path
    whole = f"**/*{escape(stem)}*"
    parts = [part for part in parts_of(stem) if len(part) >= _SHORTEST_PART]
    if len(parts) < 2 or fits_something([whole], index, MOST_IN_CHAIN):
        part_of_name = whole
    else:
        tries = [f"**/*{a}*/**/*{b}*{ending}" for a, b in (parts[-2:], parts[-2:][::-1])]
        tries += [f"**/*{part}*{ending}" for part in sorted(parts, key=len, reverse=True)]
        part_of_name = next((pattern for pattern in tries if fits_something([pattern], index, 1)), whole)
    return _first([*patterns, part_of_name])


def chain_for_module(parts: list[str], source: str = "") -> tuple[str, ...]:
    """Finds `a.b.c`, `@/a/b/c` or an import path: the module, the package, the module that defines the name.
    `source` is the most common base folder.
    """
    whole, holder = "/".join(map(escape, parts)), "/".join(map(escape, parts[:-1]))
    patterns = [
        f"{source}/{whole}.*" if source else f"{whole}.*",
        f"**/{whole}.*",
        f"**/{whole}/{_ENTRY_FILES}.*",
    ]
    patterns += [f"**/{holder}.*"] if holder else []
    return _first(patterns)


def chain_for_identifier(word: str) -> tuple[str, ...]:
    names = one_of([escape(spelling) for spelling in spellings(word)])
    return (f"**/{names}.*", f"**/*{names}*")


def chain_for_tests(name: str) -> tuple[str, ...]:
    stem = name.rpartition("/")[2]
    stem = stem.rpartition(".")[0] or stem
    names = one_of([escape(spelling) for spelling in spellings(stem)])
    return (
        f"**/test_{names}.*",
        f"**/{names}{{_test,.test,.spec,_spec,Test,Tests}}.*",
        f"**/{{test_*{escape(stem)}*,*{escape(stem)}*{{test,spec}}*}}.*",
        f"**/{{test,tests,spec,__tests__}}/**/*{escape(stem)}*",
    )


def chain_for_batch(folder: str, names: str, index: Index) -> tuple[str, ...]:
    below = "**" if names == "*" else f"**/{names}"
    if not folder:
        return (below,)
    safe = escape(folder)
    here = f"{safe}/{below}"
    return (here,) if index.has_folder(folder) else (here, f"**/{safe}/{below}")


def by_suffix(path: str, index: Index) -> str:
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    for start in range(len(parts)):
        candidate = "/".join(parts[start:])
        if index.contains(candidate):
            return candidate
    return ""


def folder_called(name: str, index: Index) -> str:
    """Returns the folder with this path, or the first whose path ends with it, or ""."""
    name = re.sub(r"^(?:\./)+", "", name).rstrip("/")
    if not name or index.has_folder(name):
        return name
    found = _matches(f"**/{escape(name)}/**", index)
    if found is None or not found.paths:
        return ""
    above, _, _ = f"/{found.paths[0]}".partition(f"/{name}/")
    return f"{above}/{name}".lstrip("/")


def fits_something(patterns: Iterable[str], index: Index, most: int) -> bool:
    """Whether a pattern has between 1 and `most` matches."""
    for pattern in patterns:
        found = _matches(pattern, index)
        if found is not None and 0 < found.count <= most:
            return True
    return False


def _matches(pattern: str, index: Index) -> Matches | None:
    compiled = compile_pattern(pattern, ignore_case=index.ignore_case)
    return None if isinstance(compiled, InvalidPattern) else index.match(compiled, limit=1)


def _first(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(patterns))[:MAX_PATTERNS]


_HUMPS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_ORDINARY: Final = """
about above actual add after again agent all also always another answer any anything apply are argument arguments
around array ask back base basic because been before behind being below best better between body bool both break
bug build builds but button call called calls can case cases change changed changes char check class classes clean
cleanup client clients code color command commands comment comments commit compile complete component components
config continue convert copy core could count create current data database debug default define delete demo deploy
describe design dev diff different do docs document does doing done down draft each easy edit else empty end ensure
entry error errors even event events every everything example examples exit explain extend extract fail fails
false fast feature file files find first fix fixed fixes flow folder folders following for form format from full
function functions game general generate get give go good handle handler has have head help helper here home how
however idea image import improve in include index info init input inside install instead interface into is issue
issues it item items job json just keep key keys kind know last layout lead left less let level like limit line
lines link list load local log logic login logs long look loop lot main make makes many map master match may me
mean message messages method methods might missing mode model models module modules more most move much must my
name names need new next nice no node none not note now null number object of off old on once one only open option
options or order other our out output over own package page pages parse part path paths plan please point possible
print problem process program project proper public pull push put python query question quick quit random read
ready real really refactor release remove rename replace report request response rest result return review right
root route routes run running same save schema screen script scripts search section see select self send server
service services session set setting settings setup should show side simple simply since size slow small so some
something source specific start state step still stop store string structure stuff style styles such summary
support sure switch system table take task team tell test tests text than that the their them then there these
they thing things think this those through time title to today together too tool tools top touch tree true try
two type types under understand unit until up update updates use used user users uses using util utils valid value
values variable version very via view views wait want was way we web week well were what when where which while
who whole why will with without word words work works would write wrong yes yet you your
"""
#: Common words that are also file names. Alone and in lower case, they name no file.
ORDINARY: Final = frozenset(_ORDINARY.split())

_PRODUCTS: Final = "node next vue nuxt express three d3 react ember backbone chart alpine"
#: They resemble file names.
PRODUCTS: Final = frozenset(f"{name}.js" for name in _PRODUCTS.split())


def looks_like_identifier(word: str) -> bool:
    """`parseConfig`, `ParseConfig`, `parse_config`, `a-b`."""
    inner = word.strip("_")
    if "_" in inner or "-" in inner:
        return len(_HUMPS.findall(inner)) > 1
    return bool(re.search(r"[a-z\d][A-Z]", inner)) or (word != inner and len(inner) > 2)


def parts_of(word: str) -> list[str]:
    return [hump.lower() for hump in _HUMPS.findall(word)]


def spellings(word: str) -> list[str]:
    """The word as written is the first."""
    humps = parts_of(word)
    if not humps:
        return [word]
    pascal = "".join(hump.capitalize() for hump in humps)
    written = [
        word,
        "_".join(humps),
        "-".join(humps),
        humps[0] + pascal[len(humps[0]) :],
        pascal,
        "".join(humps),
    ]
    return list(dict.fromkeys(written))


def one_of(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else "{" + ",".join(choices) + "}"

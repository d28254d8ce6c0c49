"""Derives fallback chains of patterns from names in a request.

Order: exact path, name anywhere, near the named folder, name with another extension, part of the name
anywhere; each name in all common spellings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tui_agent.answers.plans import MAX_PATTERNS
from tui_agent.workspace.index import Index, Matches
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern, escape

_ENTRY_FILES: Final = "{__init__,index,mod,main}"
_SHORTEST_PART: Final = 3
#: A pattern with more matches is too broad.
MOST_IN_CHAIN: Final = 20


def chain_for_path(path: str, index: Index) -> tuple[str, ...]:
    """The chain for an exact or approximate path or file name."""
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
    # A pattern for the last resort: the stem in a file name, otherwise its parts in the path
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
    """The chain for `a.b.c`, `@/a/b/c` or an import path: the module, the package, the module that defines
    the name.

    `source` is the most common base folder of such paths.
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
    """The chain for a class, function or component: files with that name in any spelling, then files with it
    in their names."""
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
    """The chain for all matching files below a folder, or anywhere."""
    below = "**" if names == "*" else f"**/{names}"
    if not folder:
        return (below,)
    safe = escape(folder)
    here = f"{safe}/{below}"
    return (here,) if index.has_folder(folder) else (here, f"**/{safe}/{below}")


def by_suffix(path: str, index: Index) -> str:
    """The indexed file with the longest suffix of an absolute or foreign path; "" if none."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    for start in range(len(parts)):
        candidate = "/".join(parts[start:])
        if index.contains(candidate):
            return candidate
    return ""


def folder_called(name: str, index: Index) -> str:
    """The indexed folder with this path, or the first whose path ends with it; "" if none."""
    name = re.sub(r"^(?:\./)+", "", name).rstrip("/")
    if not name or index.has_folder(name):
        return name
    found = _matches(f"**/{escape(name)}/**", index)
    if found is None or not found.paths:
        return ""
    above, _, _ = f"/{found.paths[0]}".partition(f"/{name}/")
    return f"{above}/{name}".lstrip("/")


def fits_something(patterns: Iterable[str], index: Index, most: int) -> bool:
    """Whether a pattern of the chain has between 1 and `most` matches."""
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
#: Common words of requests and programs that are also file names. Alone and in lower case, they name no file.
ORDINARY: Final = frozenset(_ORDINARY.split())

_PRODUCTS: Final = "node next vue nuxt express three d3 react ember backbone chart alpine"
#: Product names that resemble file names.
PRODUCTS: Final = frozenset(f"{name}.js" for name in _PRODUCTS.split())


def looks_like_identifier(word: str) -> bool:
    """Whether a word is spelled like an identifier: `parseConfig`, `ParseConfig`, `parse_config`, `a-b`."""
    inner = word.strip("_")
    if "_" in inner or "-" in inner:
        return len(_HUMPS.findall(inner)) > 1
    return bool(re.search(r"[a-z\d][A-Z]", inner)) or (word != inner and len(inner) > 2)


def parts_of(word: str) -> list[str]:
    return [hump.lower() for hump in _HUMPS.findall(word)]


def spellings(word: str) -> list[str]:
    """The word as written, then in snake_case, kebab-case, camelCase, PascalCase and without separators."""
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

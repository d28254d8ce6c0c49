"""How a thing's name may be spelled as a file's, and which words are never names of files."""

from __future__ import annotations

import re
from typing import Final

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
#: Words of requests and of programming that are also names of files. Alone, in lower case, they mean no file.
ORDINARY: Final = frozenset(_ORDINARY.split())

_PRODUCTS: Final = "node next vue nuxt express three d3 react ember backbone chart alpine"
#: Names of products that end like files.
PRODUCTS: Final = frozenset(f"{name}.js" for name in _PRODUCTS.split())


def looks_like_identifier(word: str) -> bool:
    """Whether a word is written as programs write names: `parseConfig`, `ParseConfig`, `parse_config`, `a-b`."""
    inner = word.strip("_")
    if "_" in inner or "-" in inner:
        return len(_HUMPS.findall(inner)) > 1
    return bool(re.search(r"[a-z\d][A-Z]", inner)) or (word != inner and len(inner) > 2)


def parts_of(word: str) -> list[str]:
    """The words that a name is made of, in lower case."""
    return [hump.lower() for hump in _HUMPS.findall(word)]


def spellings(word: str) -> list[str]:
    """The word as it is, then in snake_case, kebab-case, camelCase, PascalCase and in one piece."""
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
    """A pattern for one of several names."""
    return choices[0] if len(choices) == 1 else "{" + ",".join(choices) + "}"

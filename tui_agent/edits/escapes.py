r"""Detection of doubly escaped text: `\n` for a line break, `&lt;` for `<`."""

from __future__ import annotations

import re
from itertools import islice

#: A string literal of most languages, or the rest of a line after an unclosed quote.
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*(?:\"|$)|'(?:\\.|[^'\\])*(?:'|$)|`(?:\\.|[^`\\])*(?:`|$)")
_ENTITY = re.compile(r"[\w)\]\"'-] ?&(?:lt|gt|amp);|&(?:lt|gt|amp);=|&amp;&amp;|&lt;&lt;|&gt;&gt;")
_QUOTE = re.compile(r"(?:^|[\s=(,\[{:+])&(?:quot|apos|#0?39|#0?34|#x27|#x22);")
#: An escaped line break followed by indentation, or next to an escaped quote, outside of strings.
_SURE_BREAK = re.compile(r"[\w:;{})\]]\\n\\t|\\n {2,}.*\\''|\\''.*\\n(?:$| )")
_BREAK = re.compile(r"\\n(?=\s{2,}|\\n|\s*$|[\w@#}\])])")
_REMARK = ("#", "//", "/*", "*", "--", "%", ";", "<!--")
#: Maximum number of lines with a candidate to examine.
_MOST_LINES = 20_000
#: File types in which escape sequences are normal.
_ORDINARY = (
    *(".html", ".htm", ".xml", ".svg", ".xhtml", ".vue", ".svelte", ".astro", ".jsx", ".tsx", ".xsl", ".php"),
    *(".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".tex", ".sty", ".cls", ".bib", ".ipynb", ".json"),
    *(".properties", ".po", ".pot", ".csv", ".tsv", ".log", ".patch", ".diff", ".resx", ".xaml", ".plist"),
    *(".erb", ".ejs", ".hbs", ".j2", ".jinja", ".tmpl", ".tpl", ".cshtml", ".razor", ".roff", ".l", ".lex"),
)


def escaped(path: str, base: str, new: str) -> str:
    """Returns an escape sequence in a new line outside of strings, or "" if uncertain."""
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
    from html import unescape  # imports a table of two thousand entities

    readings = (text.replace("\\n", "\n").replace('\\"', '"'), unescape(text))
    return [one for one in readings if one != text]

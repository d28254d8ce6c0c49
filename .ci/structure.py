"""The tree's limits and its plain English, part of `make check`: there is no list of exemptions.

    structure.py [ROOT]     prints each offence with its place, then the counts; 1 where there is any

No file over 600 lines, no function whose body is over 60 lines (without its docstring and functions inside it), no
class over 25 public methods (inherited methods of ours counted), no public class name twice,
no import cycle inside the package, however late the import, no private module, name, attribute or method of a library,
swapped class, fake module or profile hook outside the files that are for patches, and no turn of phrase from the word
list in a string, a docstring, a comment or a document; and no `int()` or `float()` of text from outside. The shape of
the whole package is limited by ratios (`RATIOS`). Read as text: nothing is imported.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "tui_agent"
#: The rehearsal's sample project, which belongs to nobody's tree.
SAMPLE = f"{PACKAGE}/rehearsal/project"
LINES, METHODS, BODY = 600, 25, 60
#: Limits of the whole package, set to its state at the time; a simplification lowers them.
RATIOS = {
    "% of all functions are private and named once": 12.0,
    "modules per 1,000 lines": 4.2,
    "words of docstrings and comments per 100 lines": 64.0,
    "imports inside functions per 1,000 lines": 3.1,
}
#: Smaller packages, in lines, have no ratios.
JUDGED_FROM = 2_000
#: Where numbers are read from text; and the program inside a view, which reads the kernel's and imports only itself.
NUMBERS = (f"{PACKAGE}/files/numbers.py", f"{PACKAGE}/sandbox/inside/")
#: Where libraries are patched: Textual, in the interface, and httpcore, in the model's child, which imports no screen.
PATCHES = (f"{PACKAGE}/ui/textual_patches/", f"{PACKAGE}/model/httpcore_patch.py")
#: Libraries whose classes are bases of ours; of others only attributes of their objects are looked at.
INHERITED = ("textual",)
#: Turns of phrase that plain English does without: negated nouns, old-fashioned adverbs, verbs for “is”.
WORDS = re.compile(
    r"""\b(?:anew|of\ late|for\ ever|to\ the\ letter|gone\ on\ with|shall
    |(?<!there\ )(?:is|are)\ no\ (?!longer\b|more\b)\w+
    |what\ stands|stands\ in|stand\ in\ the|takes?\ it\ back|found\ no\ place|no\ place\ for\ it)\b""",
    re.IGNORECASE | re.VERBOSE,
)
DOCUMENTS = ("*.md", "docs/*.md", "config/*", "themes/*", "tests/*.md")
#: What is read by people; the text of an f-string is a kind of its own since Python 3.12.
TEXTS = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))

Trees = dict[str, ast.Module]


@cache
def walk(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, which each rule reads again."""
    return list(ast.walk(tree))


def trees(root: Path) -> Trees:
    """Each module of the package, by its path below the root."""
    paths = (path.relative_to(root).as_posix() for path in sorted((root / PACKAGE).rglob("*.py")))
    return {
        path: ast.parse((root / path).read_text("utf-8")) for path in paths if not path.startswith(SAMPLE)
    }


def long_files(root: Path, modules: Trees) -> Iterator[str]:
    for path in modules:
        lines = (root / path).read_text("utf-8").count("\n")
        if lines > LINES:
            yield f"{path}: {lines} lines, {LINES} are allowed"


def long_functions(modules: Trees) -> Iterator[str]:
    for path, tree in modules.items():
        for node in walk(tree):
            if isinstance(node, _FUNCTIONS):
                body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
                lines = _lines(*body) - sum(_lines(inner) for inner in _inner_functions(node)) if body else 0
                if lines > BODY:
                    yield f"{path}:{node.lineno}: the body of {node.name} has {lines} lines, {BODY} are allowed"


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _lines(*nodes: ast.stmt) -> int:
    return (nodes[-1].end_lineno or nodes[-1].lineno) - nodes[0].lineno + 1


def _inner_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The outermost functions inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            yield child
        else:
            yield from _inner_functions(child)


def ratios(root: Path, modules: Trees) -> dict[str, float]:
    """The figures of `RATIOS`."""
    functions = once = words = lines = late = 0
    for path, tree in modules.items():
        text = (root / path).read_text("utf-8")
        lines += text.count("\n")
        nodes = walk(tree)
        named = Counter(getattr(node, "id", getattr(node, "attr", None)) for node in nodes)
        for node in nodes:
            if isinstance(node, _FUNCTIONS):
                functions += 1
                once += _is_private(node.name) and named[node.name] == 1
                late += sum(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in _own_nodes(node))
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
                words += len(_WORD.findall(ast.get_docstring(node, clean=False) or ""))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        words += sum(len(_WORD.findall(token.string)) for token in tokens if token.type == tokenize.COMMENT)
    if lines < JUDGED_FROM:
        return dict.fromkeys(RATIOS, 0.0)
    figures = (
        *(100 * once / max(1, functions), 1000 * len(modules) / lines),
        *(100 * words / lines, 1000 * late / lines),
    )
    return dict(zip(RATIOS, figures, strict=True))


_WORD = re.compile(r"[A-Za-z']+")


def classes(modules: Trees) -> Iterator[tuple[str, ast.ClassDef]]:
    for path, tree in modules.items():
        yield from ((path, node) for node in walk(tree) if isinstance(node, ast.ClassDef))


def wide_classes(modules: Trees) -> Iterator[str]:
    bodies = {node.name: node for _, node in classes(modules)}

    def methods(name: str, seen: frozenset[str]) -> set[str]:
        if name in seen or name not in bodies:
            return set()
        found = {
            item.name
            for item in bodies[name].body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_")
        }
        for base in bodies[name].bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            found |= methods(getattr(base, "id", getattr(base, "attr", "")), seen | {name})
        return found

    for path, node in classes(modules):
        count = len(methods(node.name, frozenset()))
        if count > METHODS:
            yield f"{path}:{node.lineno}: {node.name} has {count} public methods, {METHODS} are allowed"


def twin_classes(modules: Trees) -> Iterator[str]:
    places = defaultdict(list)
    for path, node in classes(modules):
        if not node.name.startswith("_"):
            places[node.name].append(f"{path}:{node.lineno}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{found[0]}: {name} is also the name of a class in {', '.join(found[1:])}"


def cycles(modules: Trees) -> Iterator[str]:
    """Groups of modules each of which imports, by whatever way, every other."""
    names = {_module(path): path for path in modules}
    graph = {name: _imports(modules[path], names) - {name} for name, path in names.items()}
    reached = {name: _reachable(name, graph) for name in graph}
    told: set[str] = set()
    for name in graph:
        ring = sorted(other for other in reached[name] if name in reached[other])
        if ring and name not in told:
            told |= set(ring)
            yield f"{names[name]}: imports itself by way of {', '.join(one for one in ring if one != name)}"


def private_parts(modules: Trees) -> Iterator[str]:
    """Imports of private modules or names of a library, a class that is swapped, a module put into `sys.modules`, a
    hook into every call."""
    for path, tree in modules.items():
        if path.startswith(PATCHES):
            continue
        for node in walk(tree):
            match node:
                case ast.ImportFrom(module=str(name), names=names, level=0) if not name.startswith(PACKAGE):
                    parts = [*name.split("."), *(alias.name for alias in names)]
                case ast.Import(names=names):
                    parts = [part for alias in names for part in alias.name.split(".")]
                case ast.Assign(targets=targets):
                    swapped = (ast.unparse(one) for one in targets)
                    parts = [
                        "_" for one in swapped if one.endswith(".__class__") or one.startswith("sys.modules[")
                    ]
                case ast.Call(func=func):
                    parts = ["_"] if ast.unparse(func) in ("sys.setprofile", "sys.settrace") else []
                case _:
                    continue
            if parts and parts[0] in sys.stdlib_module_names:
                continue
            if any(part.startswith("_") and not part.startswith("__") for part in parts):
                yield f"{path}:{node.lineno}: {ast.unparse(node)[:60]}: that is for {PATCHES[0]}"


#: Private by its name only: what `namedtuple` documents.
PUBLIC = {"_asdict", "_fields", "_make", "_replace"}


def private_names(modules: Trees) -> Iterator[str]:
    """Private attributes and methods of a library's objects, as far as the text tells.

    Of an object that is not `self`, each private name that the file does not define. Of `self`, each private name that
    a library's class among the bases defines, whether it is used or overridden.
    """
    ours: Bases = {
        node.name: (_base_names(node), _private_names_of(node), path) for path, node in classes(modules)
    }
    theirs = _library_classes()
    for path, tree in modules.items():
        if path.startswith(PATCHES):
            continue
        defined = {
            name
            for node in walk(tree)
            for name in (
                _private_names_of(node)
                if isinstance(node, ast.ClassDef)
                else {getattr(node, "name", "")}
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                else ()
            )
        }
        modules_named = {
            alias.asname or alias.name
            for node in walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        } & sys.stdlib_module_names
        for node in walk(tree):
            match node:
                case ast.Attribute(attr=name, value=value) if (
                    _is_private(name)
                    and name not in defined | PUBLIC
                    and not (isinstance(value, ast.Name) and value.id in modules_named | {"self", "cls"})
                    and not _is_super(value)
                ):
                    yield f"{path}:{node.lineno}: {ast.unparse(node)[:60]}: that is for {PATCHES[0]}"
                case ast.ClassDef():
                    inherited = _inherited(node.name, ours, theirs)
                    for name in sorted(_used_of_self(node) & inherited):
                        yield f"{path}:{node.lineno}: {node.name}.{name} is a library's: that is for {PATCHES[0]}"


#: Classes by name: the names of their bases, the private names that they define, the file or library.
Bases = dict[str, tuple[set[str], set[str], str]]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_super(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"


def _base_names(node: ast.ClassDef) -> set[str]:
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return {getattr(base, "id", getattr(base, "attr", "")) for base in bases}


def _private_names_of(node: ast.ClassDef) -> set[str]:
    """The private names that a class defines: methods, fields, and what its methods set on `self`."""
    found = {getattr(item, "name", "") for item in node.body}
    for item in node.body:
        for target in getattr(item, "targets", [getattr(item, "target", None)]):
            found.add(getattr(target, "id", ""))
    for item in walk(node):
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and _is_self(item.value):
            found.add(item.attr)
    return {name for name in found if _is_private(name)}


def _is_self(value: ast.expr) -> bool:
    return getattr(value, "id", "") in ("self", "cls")


def _used_of_self(node: ast.ClassDef) -> set[str]:
    return _private_names_of(node) | {
        item.attr
        for item in walk(node)
        if isinstance(item, ast.Attribute)
        and _is_private(item.attr)
        and (_is_self(item.value) or _is_super(item.value))
    }


@cache
def _library_classes() -> Bases:
    """The classes of the libraries from which classes of ours inherit private names, from their source."""
    found: Bases = {}
    for library in INHERITED:
        spec = importlib.util.find_spec(library)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(place).rglob("*.py")):
                for node in ast.parse(path.read_text("utf-8")).body:
                    if isinstance(node, ast.ClassDef):
                        bases, names, _ = found.get(node.name, (set(), set(), ""))
                        found[node.name] = bases | _base_names(node), names | _private_names_of(node), library
    return found


def _inherited(name: str, ours: Bases, theirs: Bases) -> set[str]:
    """The private names that libraries' classes above a class of ours define."""
    found: set[str] = set()
    seen: set[str] = set()
    left = [name]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        bases, names, _ = ours.get(name) or theirs.get(name) or (set(), set(), "")
        if name not in ours:
            found |= names
        left += bases
    return found


#: Methods whose results are text from outside, or pieces of it.
_TEXT_OF = frozenset(
    (
        *(
            "decode",
            "findall",
            "finditer",
            "get",
            "getvalue",
            "group",
            "groupdict",
            "groups",
            "lstrip",
            "partition",
        ),
        *(
            "read",
            "read_bytes",
            "read_text",
            "removeprefix",
            "removesuffix",
            "replace",
            "rpartition",
            "rsplit",
        ),
        *("rstrip", "split", "splitlines", "strip"),
    )
)


def bare_numbers(modules: Trees) -> Iterator[str]:
    """Calls of `int` or `float` on text, which raise for 5,000 digits: a match, a part of a split, an entry of a table.

    Seen are a subscript, the result of a method such as `group` or `split`, a name that is bound to one of these in
    the same function, and `map(int, …)`. `files/numbers.py` converts within bounds.
    """
    for path, tree in modules.items():
        if path.startswith(NUMBERS):
            continue
        for scope in walk(tree):
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module):
                nodes = list(_own_nodes(scope))
                texts = _names_of_text(nodes)
                for node in nodes:
                    if isinstance(node, ast.Call) and _converts_text(node, texts):
                        yield f"{path}:{node.lineno}: {ast.unparse(node)[:60]}: take a function of files/numbers.py"


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    left = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            left += ast.iter_child_nodes(node)


def _converts_text(call: ast.Call, texts: set[str]) -> bool:
    match call:
        case ast.Call(func=ast.Name("map"), args=[ast.Name("int" | "float"), *_]):
            return True
        case ast.Call(func=ast.Name("int" | "float"), args=[value, *_]):
            return _is_text(value, texts)
    return False


def _is_text(value: ast.expr, texts: set[str]) -> bool:
    match value:
        case ast.Name(name):
            return name in texts
        case ast.Subscript():
            return True
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _TEXT_OF
        case ast.Call(func=ast.Name("next"), args=[_, *_]):
            return True
        case ast.BoolOp(values=values):
            return any(_is_text(one, texts) for one in values)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_text(body, texts) or _is_text(orelse, texts)
        case ast.NamedExpr(value=inner):
            return _is_text(inner, texts)
    return False


def _names_of_text(nodes: list[ast.AST]) -> set[str]:
    """Names that are bound to text by an assignment, a `for` or a comprehension."""
    found: set[str] = set()
    for node in [*nodes, *nodes]:  # a name may be bound to a name
        match node:
            case ast.Assign(targets=targets, value=value):
                bound = targets
            case ast.NamedExpr(target=target, value=value):
                bound = [target]
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                bound = [target]
            case _:
                continue
        if _is_text(value, found):
            found |= {one.id for target in bound for one in walk(target) if isinstance(one, ast.Name)}
    return found


def words(root: Path, modules: Trees) -> Iterator[str]:
    for path in modules:
        text = (root / path).read_text("utf-8")
        if next(_offences(path, 1, text), None):
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type in TEXTS:
                    yield from _offences(path, token.start[0], token.string)
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                text = path.read_text("utf-8", errors="replace")
                yield from _offences(path.relative_to(root).as_posix(), 1, text)


def _offences(path: str, line: int, text: str) -> Iterator[str]:
    flat = re.sub(r"\s", " ", text)
    for match in WORDS.finditer(flat):
        around = flat[max(0, match.start() - 30) : match.end() + 30].strip()
        yield f"{path}:{line + text.count(chr(10), 0, match.start())}: “{match.group()}” in “{around}”"


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(tree: ast.Module, names: dict[str, str]) -> set[str]:
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            wholes = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {whole if whole in names else node.module for whole in wholes}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & names.keys()


def _reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += graph[name]
    return seen


def main(root: Path) -> int:
    modules = trees(root)
    figures = ratios(root, modules)
    offences = {
        f"files over {LINES} lines": list(long_files(root, modules)),
        f"functions over {BODY} lines": list(long_functions(modules)),
        f"classes over {METHODS} public methods": list(wide_classes(modules)),
        "public class names that occur twice": list(twin_classes(modules)),
        "import cycles": list(cycles(modules)),
        "private parts of libraries": [*private_parts(modules), *private_names(modules)],
        "bare conversions of text": list(bare_numbers(modules)),
        "hits of the word list": list(words(root, modules)),
        "ratios over their limits": [
            f"{figures[name]:.2f} {name}, {limit:g} are allowed: simplify what the change adds, or something else"
            for name, limit in RATIOS.items()
            if figures[name] > limit
        ],
    }
    for found in offences.values():
        for offence in found:
            sys.stdout.write(f"{offence}\n")
    counts = ", ".join(f"{len(found)} {what}" for what, found in offences.items())
    shape = ", ".join(f"{figure:.2f} {name}" for name, figure in figures.items())
    sys.stdout.write(f"{len(modules)} modules: {counts}; {shape}\n")
    return int(any(offences.values()))


if __name__ == "__main__":
    gc.disable()  # half of the time would be spent on walks through the syntax trees
    sys.exit(main(Path(*sys.argv[1:2]).resolve()))

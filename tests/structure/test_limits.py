"""`.ci/structure.py`: each limit finds what breaks it, whatever way it is broken, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "structure.py"
GOOD = '"""A module."""\n\nfrom tui_agent import two\n\n\nclass One:\n    def public(self): ...\n'
METHODS = "".join(f"    def m{n}(self): ...\n" for n in range(26))


@pytest.fixture(scope="module")
def structure():
    spec = importlib.util.spec_from_file_location("structure", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LONG = "    x = 1\n"
OFFENCES = [
    ({"long.py": "\n" * 601}, "long.py: 601 lines"),
    ({"a.py": f'async def f():\n    """Doc."""\n{LONG * 61}'}, "a.py:1: the body of f has 61 lines"),
    (
        {f"m{n}.py": "\n" * 320 + "def _f(): ...\n\ndef g():\n    return _f()\n" for n in range(7)},
        "of all functions are private and named once, 12 are allowed",
    ),
    ({f"m{n}.py": "\n" * 150 for n in range(14)}, "modules per 1,000 lines, 4.2 are allowed"),
    ({f"m{n}.py": "# many words here\n" * 320 for n in range(7)}, "per 100 lines, 64 are allowed"),
    (
        {
            f"m{n}.py": "\n" * 320
            + "def f():\n    if f:\n        import os\n    def g():\n        from sys import path\n"
            for n in range(7)
        },
        "6.13 imports inside functions per 1,000 lines, 3.1 are allowed",
    ),
    ({"wide.py": f"class Wide:\n{METHODS}"}, "Wide has 26 public methods"),
    (
        {
            "a.py": f"class Base:\n{METHODS.replace('m0', '_m0')}",
            "b.py": "class Wide(Base[int]):\n    def x(self): ...",
        },
        "Wide has 26 public methods",
    ),
    ({"a.py": "class Twin: ...\n", "b/c.py": "class Twin: ...\n"}, "Twin is also the name of a class in"),
    (
        {"a.py": "from tui_agent import b\n", "b.py": "def f():\n    import tui_agent.a\n"},
        "imports itself by way of",
    ),
    (
        {
            "a.py": "import tui_agent.b\n",
            "b.py": "from tui_agent.c import x\n",
            "c.py": "if TYPE_CHECKING:\n    from tui_agent.a import y\n",
        },
        "imports itself by way of tui_agent.b, tui_agent.c",
    ),
    *(
        ({"a.py": f"def f(x, y):\n    {line}\n"}, "take a function of files/numbers.py")
        for line in (
            "return int(x[1])",
            "return float(x.group())",
            "return int(x['a'] or 1)",
            "return sum(map(int, x))",
            "return [int(one) for one, _ in x.findall(y)]",
            "a, _, b = x.partition(y); return int(b)",
            "a = x.read_text().strip(); return lambda: a, int(a)",
            "return int(x.get(y), 16)",
            "return int(next(filter(None, x.groups()), ''))",
        )
    ),
    *(
        ({"a.py": text}, "that is for tui_agent/ui/textual_patches/")
        for text in (
            "from textual._compositor import Compositor\n",
            "def f(app):\n    return app._driver\n",
            "class Own:\n    def f(self, other):\n        self._own = other._theirs\n",
            "class A(Widget):\n    def _size_updated(self): ...\n",
            "class A(Tree[int]):\n    pass\nclass B(A):\n    def f(self):\n        return self._size\n",
            "class A(Screen):\n    def f(self):\n        super()._compositor_refresh()\n",
        )
    ),
    ({"a.py": 'x = "It begins anew"\n'}, "a.py:1: “anew”"),
    ({"a.py": '"""First.\n\nIt is\nno export."""\n'}, "a.py:3: “is no export”"),
    ({"a.py": "x = 1  # of late\n"}, "a.py:1: “of late”"),
    ({"a.py": "y = f'{x} for ever'\n"}, "“for ever”"),
    ({"../README.md": "One\n\nto the letter\n"}, "README.md:3: “to the letter”"),
    ({"../config/prompt.json": '{"text": "it found no place"}'}, "config/prompt.json:1: “found no place”"),
]


def laid_out(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {
        "one.py": GOOD,
        "two.py": "there_is_no_cycle = 1  # there is no cycle\n",
        **files,
    }.items():
        path = folder / "tui_agent" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(("files", "says"), OFFENCES, ids=[says for _, says in OFFENCES])
def test_each_offence_is_found_and_named(structure, tmp_path, capsys, files, says):
    (tmp_path / "tui_agent").mkdir()
    assert structure.main(laid_out(tmp_path, files)) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 and says in told[0]


def test_a_tree_within_the_limits_passes(structure, tmp_path, capsys):
    fine = {
        "long.py": "\n" * 400,
        "f.py": f"def f():\n{LONG * 30}    def g():\n    {LONG}{LONG * 30}def _h(): ...\n",
        "a.py": f"class Wide:\n{METHODS.replace('m0', '_m0')}\nclass _Twin: ...\n",
        "b.py": "class _Twin: ...\nx = 'There is no file, it is no longer here'\nanew = 1\n",
        "own.py": "class A(Widget):\n    def f(self, row):\n        self._own = row._replace(x=1)\n",
        "other.py": "import os\ndef f(a):\n    os._exit(a._x)\nclass C:\n    _x: int\n",
        "ui/textual_patches/d.py": "def f(app):\n    return app._driver\n",
        "rehearsal/project/c.py": "class One: ...\n",
        "files/numbers.py": "def whole(x):\n    return int(x[1])\n",
        "numbers.py": "def f(x, now):\n    return int(now * x[1]), int(round(x)), float('inf'), int(x)\n",
    }
    assert structure.main(laid_out(tmp_path, fine)) == 0
    assert capsys.readouterr().out.count("\n") == 1

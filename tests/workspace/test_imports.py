"""What sources import, which files of the workspace that means, and where their tests are."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from time import process_time

import pytest

from tui_agent.workspace import syntax_trees
from tui_agent.workspace.index import Index
from tui_agent.workspace.related_files import Import, ImportRoots, aliases_for, find_tests, imported, is_test
from tui_agent.workspace.syntax_trees import read_imports


def found(
    path: str, text: str, paths: str, language: str = "", configs: Mapping[str, str] | None = None
) -> list[str]:
    """What a source at `path` imports, of a workspace with these paths (in one string)."""
    configs = configs or {}
    index = Index([*paths.split(), path, *configs])
    language = language or {"py": "python", "ts": "typescript", "tsx": "tsx", "js": "javascript"}.get(
        path.rpartition(".")[2], path.rpartition(".")[2]
    )
    places = ImportRoots(
        index, lambda source: aliases_for(source, configs.get), [("ex.org/app", ""), ("ex.org/lib", "lib")]
    )
    return imported(path, language, read_imports(language, text), places)


@pytest.mark.parametrize(
    ("path", "text", "paths", "expected"),
    [
        ("pkg/a.py", "from .b import f", "pkg/b.py", ["pkg/b.py"]),
        ("pkg/a.py", "from . import b, c", "pkg/b.py pkg/c.py pkg/__init__.py", ["pkg/b.py", "pkg/c.py"]),
        ("pkg/a.py", "from . import b, NAME", "pkg/b.py pkg/__init__.py", ["pkg/b.py", "pkg/__init__.py"]),
        ("pkg/sub/a.py", "from ..other import x", "pkg/other/__init__.py", ["pkg/other/__init__.py"]),
        ("pkg/a.py", "from ....far import x", "far.py", []),
        ("main.py", "import pkg.sub.mod as m", "pkg/sub/mod.py", ["pkg/sub/mod.py"]),
        ("src/app/a.py", "from app.b import f", "src/app/b.py", ["src/app/b.py"]),
        ("tests/test_a.py", "from app.b import f", "src/app/b.py", ["src/app/b.py"]),
        ("services/x/app/a.py", "from app import b", "services/x/app/b.py", ["services/x/app/b.py"]),
        ("scripts/a.py", "import helper", "scripts/helper.py", ["scripts/helper.py"]),
        ("a.py", "import os, sys\nfrom json import loads", "pkg/json.py", []),
        ("a.py", "try:\n    import b\nexcept ImportError:\n    import c", "b.py c.py", ["b.py", "c.py"]),
        ("a.py", "def f():\n    from b import (\n        x,\n        y as z,\n    )", "b.py", ["b.py"]),
        ("a.py", "from b import *", "b.py", ["b.py"]),
        ("a.py", "import stubbed", "stubbed.pyi", ["stubbed.pyi"]),
        ("a.py", "import b\nclass (", "b.py", ["b.py"]),
    ],
)
def test_python(path: str, text: str, paths: str, expected: list[str]) -> None:
    assert found(path, text, paths) == expected


@pytest.mark.parametrize(
    ("path", "text", "paths", "expected"),
    [
        ("src/a.ts", "import {b} from './b'", "src/b.ts", ["src/b.ts"]),
        ("src/a.ts", "import {b} from './b.js'", "src/b.ts", ["src/b.ts"]),
        ("src/a.ts", "import type {B} from '../types'", "types/index.d.ts", ["types/index.d.ts"]),
        ("src/a.tsx", "import {B} from './B'\nconst x = <B/>", "src/B.tsx", ["src/B.tsx"]),
        ("src/a.ts", "export * from './b'\nexport {c} from './c'", "src/b.ts src/c.ts", ["src/b.ts", "src/c.ts"]),
        ("src/a.ts", "import x = require('./x')", "src/x.ts", ["src/x.ts"]),
        ("src/a.js", "const b = require('./b'); const c = await import('./c')", "src/b.cjs src/c/index.js",
         ["src/b.cjs", "src/c/index.js"]),
        ("src/a.js", "import './style.css'; import data from './d.json'", "src/style.css src/d.json",
         ["src/style.css", "src/d.json"]),
        ("src/a.js", "import React from 'react'", "react.js node_modules/react/index.js", []),
        ("src/a.js", "import x from '../../../../etc/passwd'", "etc/passwd", []),
        ("src/sub/a.ts", "import x from '..'; import y from '.'", "src/index.ts src/sub/index.ts",
         ["src/index.ts", "src/sub/index.ts"]),
        ("src/a.ts", "notrequire('./b'); require(name)", "src/b.ts", []),
    ],
)  # fmt: skip
def test_typescript_and_javascript(path: str, text: str, paths: str, expected: list[str]) -> None:
    assert found(path, text, paths) == expected


def test_paths_of_a_tsconfig() -> None:
    config = """{ // with comments, and "extends"
        "extends": "../tsconfig.base",
        "compilerOptions": {
            "paths": {"@/*": ["./src/*"], "@/special": ["./src/exact.ts"], "#lib": ["../lib/index.ts"]},
        },
    }"""
    base = json.dumps({"compilerOptions": {"baseUrl": "shared"}})
    configs = {"app/tsconfig.json": config, "tsconfig.base.json": base}
    text = "import '@/b'; import '@/special'; import '#lib'; import 'util/c'"
    paths = "shared/src/b.ts shared/src/exact.ts app/src/b.ts app/src/exact.ts lib/index.ts shared/util/c.ts"
    assert found("app/src/a.ts", text, paths, configs=configs) == [
        "shared/src/b.ts",
        "shared/src/exact.ts",
        "lib/index.ts",
        "shared/util/c.ts",
    ]
    plain = {"tsconfig.json": json.dumps({"compilerOptions": {"paths": {"~/*": ["src/*"]}}})}
    assert found("src/a.ts", "import '~/b'", "src/b.ts", configs=plain) == ["src/b.ts"]
    assert found("src/a.ts", "import '~/b'", "src/b.ts", configs={"tsconfig.json": "{broken"}) == []


def test_a_tsconfig_that_extends_itself_ends() -> None:
    itself = {"tsconfig.json": json.dumps({"extends": "./tsconfig.json", "compilerOptions": {}})}
    assert found("a.ts", "import '@/b'", "b.ts", configs=itself) == []


@pytest.mark.parametrize(
    ("path", "text", "paths", "expected"),
    [
        ("cmd/main.go", 'import (\n "fmt"\n q "ex.org/app/store"\n)', "store/a.go store/b.go store/a_test.go",
         ["store/a.go", "store/b.go"]),
        ("main.go", 'import "ex.org/lib/x"', "lib/x/x.go x/x.go", ["lib/x/x.go"]),
        ("src/lib.rs", "mod a; use crate::b::c::D;", "src/a.rs src/b/c.rs src/b/mod.rs", ["src/a.rs", "src/b/c.rs"]),
        ("src/a/mod.rs", "mod x; use super::b::{C, d};", "src/a/x.rs src/b.rs src/b/d.rs src/lib.rs",
         ["src/a/x.rs", "src/b.rs", "src/b/d.rs"]),
        ("src/a.rs", "use std::io; mod tests { }", "src/std.rs src/a/tests.rs src/lib.rs", []),
        ("src/main/java/com/x/A.java", "import com.x.y.B;\nimport static com.x.C.d;\nimport java.util.List;",
         "src/main/java/com/x/y/B.java src/main/java/com/x/C.java",
         ["src/main/java/com/x/y/B.java", "src/main/java/com/x/C.java"]),
    ],
)  # fmt: skip
def test_go_rust_and_java(path: str, text: str, paths: str, expected: list[str]) -> None:
    language = {"go": "go", "rs": "rust", "java": "java"}[path.rpartition(".")[2]]
    text = f"package main\n{text}" if language == "go" else text
    assert found(path, text, paths, language) == expected


def test_an_unknown_language_and_hostile_sources_import_nothing_and_end() -> None:
    assert read_imports("cobol", "import x") == ()
    assert read_imports("python", "(" * 20_000) == ()
    assert read_imports("python", "\ud800 import \0 x") in ((), read_imports("python", "? import \0 x"))
    assert len(read_imports("python", "\n".join(f"import m{number}" for number in range(2000)))) == 500


@pytest.mark.parametrize(
    ("path", "paths", "expected"),
    [
        ("src/app/api.py", "tests/app/test_api.py tests/other/test_api.py x.py",
         ["tests/app/test_api.py", "tests/other/test_api.py"]),
        ("app/api.py", "app/api_test.py", ["app/api_test.py"]),
        ("pkg/__init__.py", "tests/test_pkg.py", ["tests/test_pkg.py"]),
        ("src/a.ts", "src/a.test.ts src/__tests__/a.spec.tsx", ["src/__tests__/a.spec.tsx", "src/a.test.ts"]),
        ("src/Button/index.tsx", "src/Button/Button.test.tsx", ["src/Button/Button.test.tsx"]),
        ("a/b.go", "a/b_test.go", ["a/b_test.go"]),
        ("src/main/java/x/A.java", "src/test/java/x/ATest.java", ["src/test/java/x/ATest.java"]),
        ("src/x.ts", "tests/x.ts tests/y.ts other/tests/x.ts src/y/x.ts", ["tests/x.ts"]),
        ("src/a/x.ts", "test/a/x.js src/a/__tests__/x.ts tests/b/x.ts", ["src/a/__tests__/x.ts", "test/a/x.js"]),
        ("packages/a/src/x.ts", "packages/a/tests/x.ts packages/b/tests/x.ts", ["packages/a/tests/x.ts"]),
        ("src/Button/index.tsx", "src/Button/__tests__/Button.jsx", ["src/Button/__tests__/Button.jsx"]),
        ("src/x.ts", "spec/x.spec.js e2e/x-spec.ts cypress/x.cy.ts",
         ["cypress/x.cy.ts", "e2e/x-spec.ts", "spec/x.spec.js"]),
        ("src/parse.rs", "tests/parse.rs src/parse/tests.rs tests/common.rs", ["src/parse/tests.rs", "tests/parse.rs"]),
        ("a/src/lib.rs", "a/tests/api.rs a/tests/errors.rs b/tests/api.rs", ["a/tests/api.rs", "a/tests/errors.rs"]),
        ("src/net/mod.rs", "src/net/tests.rs tests/net.rs", ["src/net/tests.rs", "tests/net.rs"]),
        ("net/http.go", "net/http_internal_test.go net/http_test.go net/net_test.go",
         ["net/http_internal_test.go", "net/http_test.go"]),
        ("net/dial.go", "net/net_test.go net/http_test.go", ["net/net_test.go"]),
        ("src/main/java/x/A.java",
         "src/test/java/x/TestA.java src/it/java/x/AIT.java src/test/java/x/ATestCase.java src/test/java/x/B.java",
         ["src/it/java/x/AIT.java", "src/test/java/x/ATestCase.java", "src/test/java/x/TestA.java"]),
        ("shop/orders/views.py", "shop/orders/tests.py shop/cart/tests.py", ["shop/orders/tests.py"]),
        ("tests/helpers.ts", "tests/helpers.test.ts", []),
        ("tests/test_api.py", "tests/test_test_api.py", []),
        ("README.md", "test_README.md", []),
    ],
)  # fmt: skip
def test_tests_by_their_usual_names(path: str, paths: str, expected: list[str]) -> None:
    places = find_tests([path], Index([path, *paths.split()]))
    assert places.get(path, []) == expected
    assert all(is_test(place) for place in expected)


def test_a_text_that_takes_long_to_parse_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os\n" + "# (\n" * 20_000
    monkeypatch.setattr(syntax_trees, "IMPORT_SECONDS", 0.05)
    before = process_time()
    assert read_imports("python", text) == ()
    assert process_time() - before < 1, "whole it takes 7 s"


def test_threads_do_not_share_a_parser() -> None:
    """The parser asks for pieces of a text, so that another thread may begin with the same one."""

    def is_read(name: str) -> bool:
        text = "".join(f"import {name}{number}\n" for number in range(2_000))
        return read_imports("python", text) == tuple(Import(f"{name}{number}") for number in range(500))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(is_read, ["a", "b", "c", "d"] * 3))
    finally:
        sys.setswitchinterval(before)

"""Which checks the files of a project name: CI files, recipes, tasks, settings; nothing of it is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_agent.checks.detection import concerns, found_in

RUFF = "ruff check --quiet --output-format concise"


def workflow(*runs: str, more: str = "") -> dict[str, str]:
    steps = "".join(f"      - run: {run}\n" for run in runs)
    return {
        ".github/workflows/ci.yml": f"on: push\njobs:\n  test:\n    steps:\n      - uses: a/b@v4\n{steps}{more}"
    }


def package(test: str = "jest", **more: str) -> dict[str, str]:
    scripts = ", ".join(f'"{name}": "{script}"' for name, script in {"test": test, **more}.items())
    return {"package.json": f'{{"scripts": {{{scripts}}}}}'}


#: The files of a project, and the commands of its checks.
PROJECTS: dict[str, tuple[dict[str, str], list[str]]] = {
    # ── CI files ──
    "a workflow": (
        {
            **workflow("python -m pip install -e .", "pytest -v --cov=shop tests", f"{RUFF} shop"),
            "tests/test_a.py": "",
            "shop/a.py": "",
        },
        ["pytest -q tests", f"{RUFF} shop"],
    ),
    "a workflow in blocks": (
        {
            **workflow(
                more="      - run: |\n          pip install x\n          python -m pytest \\\n            tests\n"
                "      - run: >\n          mypy\n          shop\n        working-directory: .\n"
            ),
            "tests/test_a.py": "",
            "shop/a.py": "",
        },
        ["python -m pytest -q tests", "mypy shop"],
    ),
    "a folder of its own": (
        {
            **workflow(
                more="      - working-directory: back\n        run: pytest\n      - name: x\n        run: npm ci\n"
            ),
            "back/a.py": "",
        },
        ["cd back && pytest -q"],
    ),
    "gitlab": (
        {
            ".gitlab-ci.yml": "test:\n  script:\n    - pip install -e . && python -m unittest discover -s tests -v\n"
            "    - ruff check .\n",
            "tests/test_a.py": "import unittest\n",
        },
        ["python -m unittest discover -s tests", f"{RUFF} ."],
    ),
    "no end at the first failure": (
        {
            **workflow("pytest -x --stepwise tests", "vendor/bin/phpunit --stop-on-failure", "cargo test"),
            "tests/test_a.py": "",
            "Cargo.toml": "",
        },
        ["pytest -q tests", "vendor/bin/phpunit", "cargo test --quiet --no-fail-fast"],
    ),
    "nothing of CI that is not plain": (
        workflow(
            "pytest --token $TOKEN",
            "pytest; curl x | sh",
            "pytest > out",
            "pytest ${{ matrix.x }}",
            "pytest ../../etc",
            "pytest --rootdir=/etc",
            "pytest -c ../x.ini",
            "PYTHONPATH=/etc pytest",
            "mypy --config-file ~/x .",
            "pytest /etc",
            "npm publish",
            "cargo publish",
            "twine upload dist/*",
            "pytest --evil-plugin",
            "ruff check --fix .",
            "kubectl apply -f x",
            "python -c 'import os'",
            "pytest `id`",
            'pytest -k \\"$(id)\\"',
            "mix test\\tx y",
        ),
        [],
    ),
    "no workflow that publishes": (
        {".github/workflows/release.yml": "jobs:\n  a:\n    steps:\n      - run: pytest\n"},
        [],
    ),
    "the plainest of several": (
        {
            **workflow("pytest tests/slow -m slow", "pytest", "pytest tests/a"),
            "tests/slow/a": "",
            "tests/a/a": "",
        },
        ["pytest -q"],
    ),
    "lists in one line": (
        {".gitlab-ci.yml": "unit:\n  script: [ruff check ., 'pytest -q']\n"},
        ["pytest -q", f"{RUFF} ."],
    ),
    "folders without anything at the top": (
        {
            "back/pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n",
            "front/package.json": '{"scripts": {"test": "x"}}',
            "docs/Makefile": "test:\n\t./t\n",
        },
        ["cd back && pytest -q", "cd front && npm test", f"cd back && {RUFF} ."],
    ),
    "folders below tests at the top": (
        {"pytest.ini": "", "front/package.json": '{"scripts": {"test": "x"}}'},
        ["pytest -q"],
    ),
    "wrappers": (
        {
            **workflow(
                "uv run --frozen --group test pytest", "poetry run mypy .", "coverage run -m unittest"
            ),
            ".venv/bin/python": "",
        },
        ["pytest -q", "mypy ."],
    ),
    "an environment that poetry knows": ({"poetry.lock": "", "pytest.ini": ""}, ["poetry run pytest -q"]),
    # ── recipes ──
    "make test, and the runner that it calls": (
        {
            "Makefile": "PY ?= python3\ntest: lint\n\t@$(PY) -m pytest -v\nlint:\n\truff check .\n",
            "pytest.ini": "",
        },
        ["python -m pytest -q", f"{RUFF} ."],
    ),
    "make test of the programs in its environment": (
        {
            "Makefile": "BIN = .venv/bin\ntest: $(BIN)/activate\n\t$(BIN)/pytest -v\n\tenv/bin/python -m mypy shop\n"
            "$(BIN)/activate:\n\tpython3 -m venv .venv\n",
            "shop/a.py": "",
        },
        ["pytest -q", "python -m mypy shop"],
    ),
    "make test, and the script that it calls": (
        {**package("jest", lint="eslint ."), "Makefile": "test: lint\n\tnpm test\nlint:\n\tnpm run lint\n"},
        ["npm test", "npm run lint"],
    ),
    "make test that does more": (
        {"Makefile": "test: build\n\t. ./env.sh; pytest\nbuild:\n\tcc -o a a.c\n", "pytest.ini": ""},
        ["make test"],
    ),
    "make test that needs a network": (
        {"Makefile": "test:\n\tpip install -r dev.txt\n\tpytest tests\n", "tests/test_a.py": ""},
        ["pytest -q tests"],
    ),
    "make test in a container": (
        {"Makefile": "test:\n\tdocker compose run app pytest\n", "pytest.ini": ""},
        ["pytest -q"],
    ),
    "make check": ({"Makefile": "check:\n\t./run-all\n"}, ["make check"]),
    "make test of npm": (
        {**package("mocha"), "Makefile": "test:\n\tnpm run build && npm test\n"},
        ["make test"],
    ),
    "just": (
        {
            "justfile": "test *args:\n    cargo test --workspace {{args}}\n\nlint:\n    cargo clippy -- -D warnings\n",
            "Cargo.toml": "",
        },
        ["cargo test --quiet --no-fail-fast --workspace", "cargo clippy --quiet -- -D warnings"],
    ),
    "Taskfile": (
        {
            "Taskfile.yml": "version: '3'\n\nvars:\n  PKG: ./...\n\ntasks:\n  default: task test\n"
            "  build:\n    cmds: [mkdir -p out]\n"
            "  test:\n    deps: [build]\n    cmds:\n      - task: test:unit\n      - |\n        go test ./...\n"
            "  test:unit:\n    dir: sub\n    cmds:\n    - cmd: pytest {{.CLI_ARGS}}\n      silent: true\n"
            "  lint:\n    - golangci-lint run {{.PKG}}\n",
            "sub/a.py": "",
        },
        ["cd sub && pytest -q", "go test ./...", "golangci-lint run ./..."],
    ),
    "a Taskfile of its own": (
        {"Taskfile.yaml": "tasks:\n  test:\n    cmds:\n      - ./run-tests --all\n"},
        ["task test"],
    ),
    # ── tasks ──
    "tox": (
        {
            "tox.ini": "[testenv]\ndeps = x\ncommands =\n    pytest {posargs:tests}\n"
            "[testenv:lint]\ncommands = flake8 src\n",
            "tests/test_a.py": "",
            "src/a.py": "",
        },
        ["pytest -q tests", "flake8 src"],
    ),
    "tox in TOML": (
        {
            "pyproject.toml": "[tool.tox.env_run_base]\n"
            "commands = [['pytest', '--basetemp={env_tmp_dir}', {replace = 'posargs', default = ['tests']}]]\n",
            "tests/test_a.py": "",
        },
        ["pytest -q tests"],
    ),
    "nox": (
        {
            "noxfile.py": "@nox.session\ndef tests(session):\n    session.install('.')\n"
            "    session.run('pytest', 'tests', *session.posargs, env={'A': '1'})\n    session.run(cmd())\n",
            "tests/test_a.py": "",
        },
        ["pytest -q tests"],
    ),
    "hatch": (
        {
            "pyproject.toml": "[tool.hatch.envs.default.scripts]\n"
            "test = 'pytest {args:tests}'\npublish = 'twine upload'\n",
            "tests/test_a.py": "",
        },
        ["pytest -q tests"],
    ),
    "pre-commit": (
        {
            ".pre-commit-config.yaml": "repos:\n- repo: x\n  hooks:\n  - id: ruff-check\n"
            "  - id: ruff-format\n  - id: mypy\n"
        },
        [f"{RUFF} .", "ruff format --quiet --check .", "mypy ."],
    ),
    "pre-commit with hooks that nobody knows": (
        {".pre-commit-config.yaml": "repos:\n- repo: x\n  hooks:\n  - id: rare\n"},
        ["pre-commit run --all-files"],
    ),
    # ── Python ──
    "mypy that knows its files": ({"mypy.ini": "[mypy]\nfiles = a, b\n"}, ["mypy"]),
    "mypy of a package": (
        {"pyproject.toml": "[project]\nname = 'my-shop'\n[tool.mypy]\n", "my_shop/__init__.py": ""},
        ["mypy my_shop"],
    ),
    "Django": (
        {
            "manage.py": "os.environ['DJANGO_SETTINGS_MODULE']",
            "shop/tests.py": "",
            "tests/test_a.py": "import unittest\n",
        },
        ["python manage.py test"],
    ),
    "Django with pytest": ({"manage.py": "DJANGO_SETTINGS_MODULE", "pytest.ini": ""}, ["pytest -q"]),
    "a runner of its own": (
        {"runtests.py": "", "tests/test_a.py": "import unittest\n"},
        ["python runtests.py"],
    ),
    "no discovery beside settings": (
        {"tox.ini": "[testenv]\ncommands = ./run.sh\n", "tests/test_a.py": "import unittest\n"},
        [],
    ),
    "discovery": ({"tests/test_a.py": "import unittest\n"}, ["python -m unittest discover -q -s tests"]),
    "ruff for its format alone": ({"pyproject.toml": "[tool.ruff.format]\nquote-style = 'single'\n"}, []),
    # ── Node ──
    "scripts": (package(lint="eslint .", typecheck="tsc"), ["npm test", "npm run lint", "npm run typecheck"]),
    "a test that lints": (package("npm run lint && mocha", lint="eslint ."), ["npm test"]),
    "a lint that writes": (package(lint="eslint . --fix"), ["npm test"]),
    "a test that watches": (package("jest --watch", **{"test:ci": "jest --ci"}), ["npm run test:ci"]),
    "react-scripts": (package("react-scripts test"), ["CI=true npm test"]),
    "yarn by packageManager": (
        {"package.json": '{"packageManager": "yarn@4.1.0", "scripts": {"test": "x"}}'},
        ["yarn test"],
    ),
    "packages": ({"package.json": '{"workspaces": ["a"]}'}, ["npm run test --workspaces --if-present"]),
    "packages of pnpm": (
        {
            "package.json": '{"name": "x"}',
            "pnpm-lock.yaml": "",
            "pnpm-workspace.yaml": "packages:\n  - 'a/*'\n",
        },
        ["pnpm -r --no-bail --no-sort --if-present run test"],
    ),
    # ── others ──
    "a workspace of Rust": (
        {"Cargo.toml": "[workspace]\nmembers = ['a']\n"},
        ["cargo test --quiet --no-fail-fast --workspace"],
    ),
    "features of Rust": (
        {"Cargo.toml": "", **workflow("cargo test --verbose --all-features", "cargo fmt --all -- --check")},
        ["cargo test --quiet --no-fail-fast --all-features", "cargo fmt --all -- --check"],
    ),
    "a workspace of Go": ({"go.work": "go 1.22\nuse (\n\t./a\n\t./b // x\n)\n"}, ["go test ./a/... ./b/..."]),
    "Go with linters": (
        {
            "go.mod": "",
            ".golangci.yml": "",
            **workflow("go test -race -coverprofile=c.out ./...", "go vet ./..."),
        },
        ["go test ./...", "go vet ./...", "golangci-lint run"],
    ),
    "CMake": (
        {"CMakeLists.txt": 'project(a)\noption(BUILD_TESTS "tests" OFF)\nenable_testing()\n'},
        [
            "cmake -S . -B build -DBUILD_TESTS=ON && cmake --build build && ctest --test-dir build --output-on-failure"
        ],
    ),
    "CMake, options that are not to build its tests": (
        {
            "CMakeLists.txt": 'option(A_WITHOUT_TESTS "none" OFF)\noption(A_TEST_WITH_VALGRIND "slow" OFF)\n'
            'option(NO_TESTS "none" OFF)\noption(A_BuildTests "x" OFF)\nenable_testing()\n'
        },
        [
            "cmake -S . -B build -DA_BuildTests=ON && cmake --build build "
            "&& ctest --test-dir build --output-on-failure"
        ],
    ),
    "CMake, built": (
        {"CMakeLists.txt": "include(CTest)\n", "build/CMakeCache.txt": ""},
        ["cmake --build build && ctest --test-dir build --output-on-failure"],
    ),
    "Maven": ({"pom.xml": ""}, ["mvn -q -o -fae test"]),
    "Gradle with its wrapper": (
        {"build.gradle.kts": "", "gradlew": ""},
        ["./gradlew --offline --continue test"],
    ),
    "Perl": ({"Makefile.PL": "", "t/a.t": ""}, ["prove -lr t"]),
    "Perl as its CI says": (
        {**workflow("perl Makefile.PL", "prove -l -j4 t"), "cpanfile": "", "t/a.t": ""},
        ["prove -l t"],
    ),
    "Perl with C": (
        {"Build.PL": "", "lib/A.xs": "", "t/a.t": ""},
        ["perl Build.PL && ./Build && prove -br t"],
    ),
    "npm, with tests that end at the first failure": (
        package("mocha --bail --reporter spec test/"),
        ["npm test -- --no-bail"],
    ),
    "npm, with an audit behind the tests": (
        package("npm run tests-only", **{"tests-only": "tape test", "posttest": "aud --production"}),
        ["npm run tests-only"],
    ),
    "npm, with an audit behind the tests and a build before": (
        package("tape test", pretest="tsc -p .", posttest="npm audit"),
        ["npm run pretest && npm test --ignore-scripts"],
    ),
    "Deno": ({"deno.jsonc": "{}"}, ["deno test"]),
    "Deno, with a task": ({"deno.json": '{"tasks": {"test": "deno test -R"}}'}, ["deno task test"]),
    "a runner without a script": (
        {
            "package.json": '{"scripts": {"test": "echo no test specified"}, "devDependencies": {"vitest": "1"}}'
        },
        ["npx --no-install vitest run"],
    ),
    "Bun, without a script": ({"package.json": "{}", "bun.lock": ""}, ["bun test"]),
    "Elixir": ({"mix.exs": "", ".credo.exs": ""}, ["mix test", "mix credo"]),
    "RSpec": (
        {".rspec": "", "Gemfile": "", ".rubocop.yml": ""},
        ["bundle exec rspec", "bundle exec rubocop"],
    ),
    "Rails": ({"bin/rails": "", "Gemfile": "", "test/a_test.rb": "", "Rakefile": ""}, ["bin/rails test"]),
    "minitest": ({"Rakefile": "Rake::TestTask.new(:test)\n"}, ["rake test"]),
    "Composer": ({"composer.json": '{"scripts": {"test": "phpunit"}}', "phpunit.xml": ""}, ["composer test"]),
    "PHPUnit": (
        {"composer.json": "{}", "phpunit.xml.dist": "", "phpstan.neon": ""},
        ["vendor/bin/phpunit", "vendor/bin/phpstan analyse --no-progress"],
    ),
    # ── hostile ──
    "deep and long": (
        {
            "Makefile": "test: "
            + "a " * 9000
            + "\n"
            + "\n".join(f"a{n}: a{n + 1}" for n in range(9000))
            + "\n",
            ".github/workflows/ci.yml": "- " * 40_000 + "run: |\n" + " " * 40_000,
            "noxfile.py": "session.run(" + "'a'," * 90_000,
            "tox.ini": "[testenv]\ncommands =\n" + "  {" * 20_000 + "\n",
            "go.work": "use (" + "a/" * 20_000,
        },
        [],
    ),
    "rules in a circle": (
        {"Makefile": "test: a\na: test\n\t$(MAKE) test\nX = $(X)$(X)\nlint:\n\t$(X)\n"},
        ["make test"],
    ),
}


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize("name", PROJECTS)
def test_the_commands_are_those_of_the_project(name: str, tmp_path: Path) -> None:
    files, expected = PROJECTS[name]
    write(tmp_path, files)
    assert [check.command for check in found_in(tmp_path)] == expected


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    ["\n" * 10**6, " " * 10**6, (" " * 990 + "\n") * 1000, ("test: a " * 120 + "\n") * 1000],
    ids=["lines", "spaces", "lines of spaces", "rules"],
)
def test_files_that_nobody_writes_are_read_in_a_moment(tmp_path: Path, text: str) -> None:
    names = (
        "Makefile",
        "justfile",
        "Taskfile.yml",
        ".pre-commit-config.yaml",
        "tox.ini",
        "noxfile.py",
        ".gitlab-ci.yml",
        "CMakeLists.txt",
    )
    for name in (*names, "go.work", "pnpm-workspace.yaml", "Rakefile", "pubspec.yaml"):
        (tmp_path / name).write_text(text)
    found_in(tmp_path)  # an hour without bounds


def test_pipes_and_links_out_of_the_folder_are_not_waited_for(tmp_path: Path) -> None:
    names = (
        ".github/workflows/a.yml",
        ".gitlab-ci.yml",
        "Makefile",
        "justfile",
        "noxfile.py",
        "go.work",
        "pom.xml",
    )
    for name in names:
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / "project" / name)
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, {"test_a.py": "import pytest\n", "conftest.py": "", "pyproject.toml": "[tool.pytest]\n"})
    project = tmp_path / "project"
    (project / "tests").symlink_to(elsewhere)
    (project / "backend").symlink_to(elsewhere)
    assert found_in(project) == []


def test_a_suite_concerns_everything_but_what_only_people_read(tmp_path: Path) -> None:
    write(tmp_path, {"pytest.ini": "", "ruff.toml": ""})
    suite, linter = found_in(tmp_path)
    for path in ("shop/a.py", "shop/page.html", "tests/data.json", "requirements.txt"):
        assert concerns(suite, [path])
    assert not concerns(suite, ["README.md", "docs/use.rst", "LICENSE"])
    assert concerns(suite, ["README.md", "shop/a.py"])
    assert concerns(linter, ["shop/a.py"])
    assert not concerns(linter, ["shop/page.html"])

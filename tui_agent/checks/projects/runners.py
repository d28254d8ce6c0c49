"""Known test runners and linters by first words, with permitted arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui_agent.checks.projects.files import Project, is_inside
from tui_agent.files.lazy_regex import late

PYTHON = ("*.py", "*.pyi", "*.toml", "*.cfg", "*.ini")
RUST = ("*.rs", "Cargo.toml", "Cargo.lock")
GO = ("*.go", "go.mod", "go.sum")
#: Tests may depend on any file except documentation.
TESTED = ("!*.md", "!*.rst", "!*.adoc", "!LICENSE*", "!AUTHORS*", "!.gitignore", "!.github/*")


class KnownRunner(NamedTuple):
    """- keep, drop: options. Dropped ones only affect output, measurement or speed, or stop at the first
      failure, which would hide others.
    - valued: options whose value is the next word.
    - paths: the project's files and folders may be named."""

    begin: str
    kind: str
    name: str
    files: tuple[str, ...] = TESTED
    keep: str = ""
    drop: str = ""
    valued: str = ""
    paths: bool = True
    #: At least one is required: the program writes without it.
    needs: str = ""
    instead: str = ""


RUNNERS = (
    KnownRunner(
        "pytest",
        "python tests",
        "pytest",
        keep=(
            "-k -m -p -W -c -o --ds --rootdir --import-mode --doctest-modules --doctest-glob "
            "--ignore --ignore-glob --pyargs --strict-markers --strict-config --no-migrations "
            "--reuse-db --deselect --noconftest"
        ),
        drop=(
            "-x --exitfirst --sw --stepwise "
            "-q -qq -v -vv -vvv -s -ra -rA -rs -rf -rsx -rfE --verbose --quiet --cov --no-cov "
            "--cov-report --cov-config --cov-append --cov-branch --cov-fail-under "
            "--no-cov-on-fail --junitxml --junit-xml --tb --durations --durations-min --color "
            "--basetemp --maxfail -n --numprocesses --dist --html --self-contained-html -l "
            "--showlocals --cov-context --capture --failed-first --ff --log-level "
            "--benchmark-disable --benchmark-skip"
        ),
        valued=(
            "-k -m -p -W -c -o -n --ds --rootdir --tb --color --basetemp --maxfail --numprocesses "
            "--dist --cov-report --cov-config --ignore --ignore-glob --deselect --import-mode "
            "--durations --junitxml --log-level"
        ),
        instead="pytest -q",
    ),
    KnownRunner(
        "unittest",
        "python tests",
        "unittest",
        keep="discover -s -t -p --start-directory --pattern --top-level-directory",
        drop="-v --verbose -q -b --buffer -f --failfast",
        valued="-s -t -p --start-directory --pattern --top-level-directory",
    ),
    KnownRunner(
        "manage.py test",
        "python tests",
        "django",
        keep="--settings --tag --exclude-tag --noinput --no-input --keepdb",
        drop=("-v --verbosity -v2 -v3 --parallel --failfast --timing --force-color --no-color"),
        valued="-v --verbosity --settings --tag --exclude-tag",
    ),
    KnownRunner(
        "runtests.py",
        "python tests",
        "runtests",
        keep="--settings",
        drop="-v --verbosity -v2 --parallel --noinput --failfast",
        valued="-v --verbosity --settings",
    ),
    KnownRunner(
        "ruff check",
        "ruff",
        "ruff",
        PYTHON,
        keep="--config --select --ignore --extend-select --preview --no-cache",
        drop=(
            "--quiet -q --output-format --diff --statistics -v --verbose --no-fix --show-files "
            "--exit-non-zero-on-fix"
        ),
        valued="--config --select --ignore --output-format",
        instead="ruff check --quiet --output-format concise",
    ),
    KnownRunner(
        "ruff format",
        "python format",
        "ruff format",
        PYTHON,
        keep="--check --config --preview",
        drop="--diff --quiet -q",
        valued="--config",
        needs="--check --diff",
        instead="ruff format --quiet --check",
    ),
    KnownRunner(
        "black",
        "python format",
        "black",
        PYTHON,
        keep="--check --config",
        drop="--diff --color --verbose -v --quiet -q",
        valued="--config",
        needs="--check",
        instead="black --quiet",
    ),
    KnownRunner(
        "isort",
        "isort",
        "isort",
        PYTHON,
        keep="--check --check-only -c --profile",
        drop="--diff --df -q --quiet",
        valued="--profile",
        needs="--check --check-only -c",
    ),
    KnownRunner(
        "flake8",
        "flake8",
        "flake8",
        PYTHON,
        keep=("--max-line-length --ignore --select --extend-ignore --exclude --config"),
        drop="--count --show-source --statistics -v --benchmark --jobs -j",
        valued=("--max-line-length --ignore --select --extend-ignore --exclude --config --jobs -j"),
    ),
    KnownRunner(
        "mypy",
        "mypy",
        "mypy",
        PYTHON,
        keep=(
            "-p -m --strict --config-file --package --module --namespace-packages "
            "--explicit-package-bases --ignore-missing-imports --python-version --exclude "
            "--show-error-codes"
        ),
        drop=(
            "--pretty --no-pretty --color-output --no-error-summary --show-error-context "
            "--cache-dir --verbose -v --junit-xml --hide-error-context --show-column-numbers "
            "--install-types --non-interactive"
        ),
        valued=("-p -m --config-file --package --module --python-version --exclude --cache-dir"),
    ),
    KnownRunner(
        "pyright",
        "pyright",
        "pyright",
        PYTHON,
        keep="-p --project --pythonversion --verifytypes --ignoreexternal",
        drop="--stats --verbose --warnings",
        valued="-p --project --pythonversion --verifytypes",
    ),
    KnownRunner(
        "basedpyright",
        "pyright",
        "basedpyright",
        PYTHON,
        keep="-p --project",
        drop="--stats",
        valued="-p --project",
    ),
    KnownRunner(
        "ty check",
        "ty",
        "ty",
        PYTHON,
        keep="--python-version --project",
        drop="--output-format --verbose -v",
        valued="--python-version --project --output-format",
    ),
    KnownRunner(
        "pylint",
        "pylint",
        "pylint",
        PYTHON,
        keep="--rcfile --disable --enable --fail-under --errors-only -E",
        drop="-j --jobs --output-format --reports -r --score",
        valued="-j --jobs --output-format --rcfile --disable --enable",
    ),
    KnownRunner(
        "cargo test",
        "rust tests",
        "cargo",
        keep=(
            "--workspace --all --all-features --no-default-features --features -F -p --package "
            "--exclude --lib --bins --tests --doc --examples --all-targets"
        ),
        drop=(
            "--verbose -v -vv --quiet -q --locked --frozen --offline --release --no-fail-fast "
            "--color -j --jobs --benches"
        ),
        valued="--features -F -p --package --exclude --color -j --jobs",
        paths=False,
        instead="cargo test --quiet --no-fail-fast",
    ),
    KnownRunner(
        "cargo clippy",
        "clippy",
        "clippy",
        RUST,
        keep=(
            "--workspace --all --all-features --no-default-features --features -F -p --package "
            "--all-targets --tests -- -D -W -A --deny --no-deps --examples --bins --lib"
        ),
        drop=("--verbose -v --quiet -q --locked --release --color --message-format --benches"),
        valued="--features -F -p --package -D -W -A --deny --color --message-format",
        paths=False,
        instead="cargo clippy --quiet",
    ),
    KnownRunner(
        "cargo fmt",
        "rust format",
        "cargo fmt",
        RUST,
        keep="--all --check --",
        drop="--verbose -v -l --color",
        valued="--color",
        paths=False,
        needs="--check",
    ),
    KnownRunner(
        "go test",
        "go tests",
        "go",
        keep="-tags -short -run -mod",
        drop=(
            "-v -race -cover -count -coverprofile -covermode -coverpkg -timeout -shuffle "
            "-failfast -parallel -p -json -vet -cpu -bench -benchmem -benchtime"
        ),
        valued="-tags -run -count -timeout -coverprofile -covermode -p",
    ),
    KnownRunner(
        "go vet",
        "go vet",
        "go vet",
        GO,
        keep="-tags",
        drop="-v",
        valued="-tags",
    ),
    KnownRunner(
        "golangci-lint run",
        "golangci-lint",
        "golangci-lint",
        GO,
        keep="--config -c --build-tags",
        drop=("--timeout -v --verbose --out-format --fix=false --new-from-rev --color"),
        valued="--config -c --timeout --build-tags --out-format",
    ),
    KnownRunner(
        "mix test",
        "elixir tests",
        "mix",
        keep="--only --exclude --include --warnings-as-errors",
        drop="--cover --trace --slowest --color",
        valued="--only --exclude --include --slowest",
    ),
    KnownRunner(
        "mix credo",
        "credo",
        "credo",
        ("*.ex", "*.exs"),
        keep="--strict",
        paths=False,
    ),
    KnownRunner(
        "mix format",
        "elixir format",
        "mix format",
        ("*.ex", "*.exs"),
        keep="--check-formatted",
        drop="--dry-run",
        needs="--check-formatted",
    ),
    KnownRunner(
        "rspec",
        "ruby tests",
        "rspec",
        keep="--tag --exclude-pattern --pattern -I --require -r",
        drop=("--format -f --color --no-color --profile --order --fail-fast -fd --backtrace"),
        valued="--tag --exclude-pattern --pattern -I --require -r --format -f --order",
    ),
    KnownRunner(
        "rake",
        "ruby tests",
        "rake",
        keep="test spec",
        drop="--trace",
        paths=False,
        needs="test spec",
    ),
    KnownRunner(
        "bin/rails test",
        "ruby tests",
        "rails",
        drop="-v --verbose --fail-fast -f",
    ),
    KnownRunner(
        "rails test",
        "ruby tests",
        "rails",
        drop="-v --verbose --fail-fast -f",
    ),
    KnownRunner(
        "rubocop",
        "rubocop",
        "rubocop",
        ("*.rb", "*.gemspec", "Gemfile", ".rubocop.yml"),
        keep="--config",
        drop="--parallel -P --format -f --color --display-cop-names",
        valued="--config --format -f",
    ),
    KnownRunner(
        "prove",
        "perl tests",
        "prove",
        keep="-l -r -b -I -lr -rl -br -rb -blr -lv -vl -lvr -lrv -vlr -rlv -bv -brv",
        drop="-v -q -Q -f -s -w -W --color --nocolor --verbose --timer -j -j2 -j4 -j8 -j9",
        valued="-I",
    ),
    KnownRunner(
        "vendor/bin/phpunit",
        "php tests",
        "phpunit",
        keep="--configuration -c --testsuite --group --exclude-group",
        drop=(
            "--coverage-clover --coverage-text --colors --testdox --no-coverage --verbose -v --coverage-html "
            "--stop-on-failure --stop-on-error --stop-on-defect"
        ),
        valued=("--configuration -c --testsuite --group --exclude-group --coverage-clover --coverage-html"),
    ),
    KnownRunner(
        "vendor/bin/phpstan",
        "phpstan",
        "phpstan",
        ("*.php", "*.neon"),
        keep="analyse analyze --configuration -c --level -l",
        drop="--no-progress --memory-limit --ansi --error-format -v",
        valued="--configuration -c --level -l --memory-limit",
        needs="analyse analyze",
    ),
    KnownRunner(
        "dotnet test",
        "dotnet tests",
        "dotnet",
        keep="--filter --configuration -c --framework -f",
        drop=(
            "--no-restore --no-build --verbosity -v --logger --collect --nologo --settings "
            "--results-directory"
        ),
        valued=("--filter --configuration -c --framework -f --verbosity -v --logger --collect --settings"),
        instead="dotnet test --no-restore",
    ),
    KnownRunner(
        "swift test",
        "swift tests",
        "swift",
        keep="--filter --skip",
        drop="--parallel -v --enable-code-coverage",
        valued="--filter --skip",
        paths=False,
    ),
    KnownRunner(
        "pre-commit run",
        "pre-commit",
        "pre-commit",
        (),
        keep="--all-files -a",
        drop="--show-diff-on-failure --verbose -v --color",
        valued="--color",
        paths=False,
        needs="--all-files -a",
    ),
)


class PlainCommand(NamedTuple):
    """Run unchanged. kind: a project has one check per kind. files: globs of the files it applies to.
    narrowed: number of words that restrict its plainest form.
    """

    kind: str
    name: str
    command: str
    files: tuple[str, ...] = TESTED
    narrowed: int = 0


#: Prefixes of a runner: environment settings for tests, and wrappers.
_VARIABLE = late(
    r"(?:PYTHONPATH|DJANGO_SETTINGS_MODULE|NODE_ENV|RAILS_ENV|MIX_ENV|CI|APP_ENV|SETTINGS)=[\w./:-]{0,80}"
)
_PYTHONS = late(r"(?:python|python3|python3?\.\d{1,2}|py)")
#: A virtual environment's programs come first on a view's path.
_ENVIRONMENT = late(r"^(?:\./)?\.?v?env/bin/")
_WRAPPERS = {
    "uv run": "--frozen --locked --no-sync --all-extras --all-groups --dev --no-dev --isolated --active --group "
    "--extra --with --python -p --no-default-groups --quiet -q --all-packages --exact",
    "poetry run": "",
    "pdm run": "-n",
    "pipenv run": "",
    "hatch run": "",
    "rye run": "",
    "pixi run": "",
    "bundle exec": "",
    "coverage run": "--branch -p --parallel-mode --source --rcfile -a --append --include --omit --parallel",
    "xvfb-run": "-a --auto-servernum",
    "php": "-d",
}
_WRAPPER_VALUES = frozenset(
    ("--group", "--extra", "--with", "--python", "-p", "--source", "--rcfile", "--include", "--omit", "-d")
)
_KEPT_WRAPPERS = {"poetry run", "pipenv run", "bundle exec"}
_SAFE = late(r"[\w ./:=@,+%\[\]()*^!<>|~\"'-]{0,400}", re.ASCII)
_OUTSIDE = late(r"(?:^|[=:,])[/~]|(?:^|[/=:,])\.\.(?:/|$)")
_OPERATORS = late(r"[;|&<>`$\\\n\r(){}#]")
_MOST_LETTERS = 400
_EVERYTHING = [
    ".",
    "./...",
    "tests",
    "test",
    "tests/",
    "discover",
    "--check",
    "--workspace",
    "--all-features",
]


def plain(line: str, project: Project, folder: str = "") -> PlainCommand | None:
    """`folder`: working directory."""
    line = line.strip()
    if len(line) > _MOST_LETTERS or not line:
        return None
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    quoted = re.sub(r"'[^'$`\\]*'|\"[^\"$`\\]*\"", "", line.partition(" #")[0])
    if _OPERATORS.search(quoted) or not all(
        _SAFE.fullmatch(word) and not _OUTSIDE.search(word) for word in words
    ):
        return None
    variables: list[str] = []
    while words and _VARIABLE.fullmatch(words[0]):
        variables.append(words.pop(0))
    before, words = _unwrapped(words, project)
    if not words:
        return None
    found = _run(words, project, folder)
    if found is None:
        return None
    command = " ".join([*variables, *([before] if before else []), found.command])
    if folder and folder != ".":
        if not is_inside(folder) or not project.has_folder(folder):
            return None
        command = f"cd {shlex.quote(folder)} && {command}"
    return found._replace(command=command)


def _unwrapped(words: list[str], project: Project) -> tuple[str, list[str]]:
    kept = ""
    for _ in range(3):
        for begin, options in _WRAPPERS.items():
            first = begin.split()
            if words[: len(first)] != first:
                continue
            rest = words[len(first) :]
            measured = begin == "coverage run"
            while rest and rest[0].partition("=")[0] in options.split() and rest[0].startswith("-"):
                option = rest.pop(0)
                if option in _WRAPPER_VALUES and rest and not (measured and option == "-p"):
                    rest.pop(0)
            if begin in _KEPT_WRAPPERS and not has_environment(project):
                kept = begin
            words = ["python", *rest] if measured else rest
            break
        else:
            break
    return kept, words


def has_environment(project: Project) -> bool:
    """Also accepts a link to a virtual environment."""
    return any((project.root / name).is_dir() for name in (".venv/bin", "venv/bin"))


def _run(words: list[str], project: Project, folder: str) -> PlainCommand | None:
    python = ""
    words = [_ENVIRONMENT.sub("", words[0]), *words[1:]]
    if _PYTHONS.fullmatch(words[0]):
        words = words[1:]
        while words and re.fullmatch(r"-(?:W\w*|X\w*|b+|I|B|u|O)", words[0]):
            words = words[1:]
        if words[:1] == ["-m"]:
            python, words = "python -m ", words[1:]
        elif words and words[0].removeprefix("./") in ("manage.py", "runtests.py", "tests/runtests.py"):
            python, words = "python ", [words[0].removeprefix("./"), *words[1:]]
        else:
            return None
        if words[:1] == ["coverage"]:
            return None
    elif words[0].removeprefix("./") == "manage.py":
        python, words = "python ", ["manage.py", *words[1:]]
    words = [words[0].removeprefix("./"), *words[1:]] if words else words
    if words[:1] == ["py.test"]:
        words[0] = "pytest"
    if words[:1] == ["phpunit"]:
        words[0] = "vendor/bin/phpunit"
    for runner in RUNNERS:
        begin = runner.begin.split()
        if words[: len(begin)] == begin or (
            runner.begin == "runtests.py" and words[:1] == ["tests/runtests.py"]
        ):
            if (runner.begin == "unittest") != (python == "python -m " and words[0] == "unittest"):
                return None
            told = _kept_words(runner, words[len(begin) :], project, folder)
            if told is None:
                return None
            start = runner.instead or " ".join(words[: len(begin)])
            if runner.begin.endswith((".py", ".py test")):
                python = "python "
            if runner.kind in ("ruff", "python format") and python:
                python = ""
            command = f"{python}{start}" + (f" {shlex.join(told)}" if told else "")
            narrowing = sum(word not in _EVERYTHING for word in told)
            return PlainCommand(runner.kind, runner.name, command, runner.files, narrowing)
    return None


def _kept_words(runner: KnownRunner, words: Sequence[str], project: Project, folder: str) -> list[str] | None:
    keep, drop, valued = runner.keep.split(), runner.drop.split(), runner.valued.split()
    told: list[str] = []
    if runner.needs and not any(word in runner.needs.split() for word in words):
        return None
    left: Iterator[str] = iter(words)
    for word in left:
        option, equals, _ = word.partition("=")
        is_kept, is_dropped = option in keep, option in drop
        if is_dropped or is_kept:
            value = next(left, None) if option in valued and not equals else None
            if is_kept and word not in runner.instead.split():
                told += [word] if value is None else [word, value]
        elif word.startswith("-") or not (runner.paths and _names_files(word, project, folder)):
            return None
        else:
            told.append(word)
    return told


def _names_files(word: str, project: Project, folder: str) -> bool:
    path = word.partition("::")[0].removesuffix("/...").removeprefix("./")
    if path in ("", ".", "..."):
        return True
    whole = f"{folder}/{path}" if folder and folder != "." else path
    if not is_inside(path):
        return False
    if project.holds(whole):
        return True
    return bool(re.fullmatch(r"[A-Za-z_][\w.]*", path)) and project.holds(whole.replace(".", "/"))

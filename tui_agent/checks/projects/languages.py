"""Python and other languages, from their settings and build files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import chain, islice

from tui_agent.checks.projects.files import Project, table, words
from tui_agent.checks.projects.runners import GO, PYTHON, PlainCommand, has_environment
from tui_agent.checks.projects.tasks import hooks

_CMAKE_TESTS = re.compile(
    r"^\s*(?:enable_testing|include\s*\(\s*CTest|add_test|gtest_discover_tests)\b",
    re.MULTILINE | re.IGNORECASE,
)
_TEST_OPTION = re.compile(
    r"^\s*option\s*\(\s*(?!\w*(?:WITHOUT|DISABLE|SKIP|EXCLUDE|(?<![A-Z])NO_))"
    r"(\w*(?:(?:BUILD|ENABLE)\w*TEST(?:S|ING)?|(?<![A-Z])TESTS?|TESTING))\s+\"[^\"\n]*\"\s+OFF",
    re.MULTILINE | re.IGNORECASE,
)


_MOST_FILES = 5
_WITH_REQUIREMENTS = (
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "Pipfile"),
    *("requirements-dev.txt", "requirements.txt", "dev-requirements.txt"),
    *("requirements/dev.txt", "requirements/test.txt"),
)
_PYTEST = re.compile(r"^(?:async )?def test_|^(?:import|from) pytest\b", re.MULTILINE)


def other_checks(project: Project) -> Iterator[PlainCommand]:
    """Yields the checks of each language once, tests first."""
    if project.has("Cargo.toml"):
        in_all = " --workspace" if table(project.toml("Cargo.toml").get("workspace")) else ""
        yield PlainCommand("rust tests", "cargo", f"cargo test --quiet --no-fail-fast{in_all}")
    if (modules := go_modules(project)) or project.has("go.mod"):
        yield PlainCommand("go tests", "go", f"go test {' '.join(map(go_packages, modules or ['']))}")
    if project.has(".golangci.yml", ".golangci.yaml", ".golangci.toml"):
        yield PlainCommand("golangci-lint", "golangci-lint", "golangci-lint run", GO)
    yield from _c(project)
    if project.has("pom.xml"):
        program = "./mvnw" if project.has("mvnw") else "mvn"
        yield PlainCommand("java tests", "maven", f"{program} -q -o -fae test")
    elif project.has("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        program = "./gradlew" if project.has("gradlew") else "gradle"
        yield PlainCommand("java tests", "gradle", f"{program} --offline --continue test")
    if project.has("mix.exs"):
        yield PlainCommand("elixir tests", "mix", "mix test")
        if project.has(".credo.exs"):
            yield PlainCommand("credo", "credo", "mix credo", ("*.ex", "*.exs"))
    elif project.has("rebar.config"):
        yield PlainCommand("erlang tests", "rebar3", "rebar3 eunit")
    yield from _ruby(project)
    yield from _php(project)
    yield from _perl(project)
    if project.matching(".", "*.sln*") or project.matching(".", "*.csproj"):
        yield PlainCommand("dotnet tests", "dotnet", "dotnet test --no-restore")
    for manifest, kind, name, command in (
        ("Package.swift", "swift tests", "swift", "swift test"),
        ("stack.yaml", "haskell tests", "stack", "stack test"),
        ("cabal.project", "haskell tests", "cabal", "cabal test all --offline"),
        ("dune-project", "ocaml tests", "dune", "dune test"),
        ("build.sbt", "java tests", "sbt", "sbt test"),
        ("build.zig", "zig tests", "zig", "zig build test"),
        ("shard.yml", "crystal tests", "crystal", "crystal spec"),
        ("gleam.toml", "gleam tests", "gleam", "gleam test"),
    ):
        if project.has(manifest):
            yield PlainCommand(kind, name, command)
    if project.has("pubspec.yaml") and project.has_folder("test"):
        flutter = re.search(r"^\s*sdk: *flutter", project.lines("pubspec.yaml"), re.MULTILINE)
        yield PlainCommand("dart tests", "test", "flutter test" if flutter else "dart test")
    if project.has("Project.toml") and project.has("test/runtests.jl"):
        yield PlainCommand("julia tests", "julia", "julia --project=. -e 'using Pkg; Pkg.test()'")


def go_packages(folder: str) -> str:
    return f"./{folder}/..." if folder else "./..."


def go_modules(project: Project) -> list[str]:
    """Returns the modules of go.work inside the project, without `./`; "" for its own."""
    text = re.sub(r"//[^\n]*", "", project.lines("go.work"))
    named = re.findall(r"^use\s+([^(\s]+)\s*$", text, re.MULTILINE)
    for group in re.findall(r"^use\s*\(([^)]*)\)", text, re.MULTILINE):
        named += group.split()
    folders = [one.strip('"').removeprefix("./").rstrip("/").removeprefix(".") for one in named]
    return [
        one for one in folders if not one or (re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*", one) and ".." not in one)
    ]


def _c(project: Project) -> Iterator[PlainCommand]:
    cmake = project.lines("CMakeLists.txt")
    if _CMAKE_TESTS.search(cmake) or _CMAKE_TESTS.search(
        project.lines("tests/CMakeLists.txt") + project.lines("test/CMakeLists.txt")
    ):
        built = next((one for one in ("build", "_build", "out") if project.has(f"{one}/CMakeCache.txt")), "")
        options = "".join(f" -D{name}=ON" for name in dict.fromkeys(_TEST_OPTION.findall(cmake)))
        first = "" if built else f"cmake -S . -B build{options} && "
        folder = built or "build"
        yield PlainCommand(
            "cmake tests", "ctest",
            f"{first}cmake --build {folder} && ctest --test-dir {folder} --output-on-failure",
        )  # fmt: skip
    elif project.has("meson.build"):
        built = next((one for one in ("build", "builddir") if project.has(f"{one}/build.ninja")), "")
        first = "" if built else "meson setup build && "
        yield PlainCommand(
            "meson tests", "meson", f"{first}meson test -C {built or 'build'} --print-errorlogs"
        )
    elif project.has("Makefile.am") and project.has("Makefile", "configure", "configure.ac"):
        first = "" if project.has("Makefile") else "./configure -q && "
        first = first if project.has("Makefile", "configure") else f"autoreconf -i && {first}"
        yield PlainCommand("make tests", "make check", f"{first}make -s check")


def _ruby(project: Project) -> Iterator[PlainCommand]:
    before = "bundle exec " if project.has("Gemfile") else ""
    if project.has(".rspec") or (project.has_folder("spec") and project.has("spec/spec_helper.rb")):
        yield PlainCommand("ruby tests", "rspec", f"{before}rspec")
    elif project.has("bin/rails") and project.has_folder("test"):
        yield PlainCommand("ruby tests", "rails", "bin/rails test")
    elif re.search(r"\bTestTask\b|\btask\s+:?['\"]?test\b|Minitest::TestTask", project.lines("Rakefile")):
        yield PlainCommand("ruby tests", "rake", f"{before}rake test")
    elif re.search(r"RSpec::Core::RakeTask", project.lines("Rakefile")):
        yield PlainCommand("ruby tests", "rake", f"{before}rake spec")
    if project.has(".rubocop.yml"):
        yield PlainCommand(
            "rubocop", "rubocop", f"{before}rubocop", ("*.rb", "*.gemspec", "Gemfile", ".rubocop.yml")
        )


def _perl(project: Project) -> Iterator[PlainCommand]:
    """A distribution with C code is built first."""
    if not project.matching("t", "*.t") or not project.has(
        "Makefile.PL", "Build.PL", "dist.ini", "minil.toml", "cpanfile"
    ):
        return
    build = next((one for one in ("Build", "Makefile") if project.has(f"{one}.PL")), "")
    if build and (project.matching(".", "*.xs") or next(project.below("lib", "*.xs"), "")):
        steps = "perl Build.PL && ./Build" if build == "Build" else "perl Makefile.PL && make -s"
        yield PlainCommand("perl tests", "prove", f"{steps} && prove -br t")
    else:
        yield PlainCommand("perl tests", "prove", "prove -lr t")


def _php(project: Project) -> Iterator[PlainCommand]:
    scripts = table(project.json("composer.json").get("scripts"))
    if words(scripts.get("test")):
        yield PlainCommand("php tests", "test", "composer test")
    elif project.has("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        yield PlainCommand("php tests", "phpunit", "vendor/bin/phpunit")
    elif project.has("artisan"):
        yield PlainCommand("php tests", "artisan", "php artisan test")
    named = project.has("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon")
    if named and not any("phpstan" in line for line in words(scripts.get("test"))):
        yield PlainCommand(
            "phpstan", "phpstan", "vendor/bin/phpstan analyse --no-progress", ("*.php", "*.neon")
        )


def python_checks(project: Project, told: Collection[str]) -> Iterator[PlainCommand]:
    """`told`: kinds with a known command."""
    tools = table(project.toml("pyproject.toml").get("tool"))
    if "python tests" not in told:
        yield from _tests(project, tools)
    ruff = table(tools.get("ruff"))
    formats_only = "format" in ruff and set(ruff) <= {"format", "line-length", "target-version"}
    if ("ruff" in tools and not formats_only) or project.has("ruff.toml", ".ruff.toml"):
        yield PlainCommand("ruff", "ruff", "ruff check --quiet --output-format concise .", PYTHON)
    elif project.has(".flake8") or any(
        "flake8" in project.sections(name) for name in ("setup.cfg", "tox.ini")
    ):
        yield PlainCommand("flake8", "flake8", "flake8", PYTHON)
    mypy: dict[str, object] = table(tools.get("mypy"))
    has_mypy = "mypy" in tools or "mypy" in hooks(project)
    for sections in map(project.sections, ("mypy.ini", ".mypy.ini", "setup.cfg")):
        has_mypy = has_mypy or "mypy" in sections
        mypy = {**mypy, **sections.get("mypy", {})}
    if has_mypy:
        names_files = any(mypy.get(key) for key in ("files", "packages", "modules"))
        yield PlainCommand("mypy", "mypy", "mypy" if names_files else f"mypy {_package(project)}", PYTHON)
    if "ty" in tools or project.has("ty.toml"):
        yield PlainCommand("ty", "ty", "ty check", PYTHON)
    if "pyright" in tools or project.has("pyrightconfig.json"):
        yield PlainCommand("pyright", "pyright", "pyright", PYTHON)
    elif "basedpyright" in tools:
        yield PlainCommand("pyright", "basedpyright", "basedpyright", PYTHON)


def _tests(project: Project, tools: dict[str, object]) -> Iterator[PlainCommand]:
    before = "" if has_environment(project) or not project.has("poetry.lock") else "poetry run "
    in_folders = (project.below(folder, "test_*.py", "*_test.py") for folder in ("tests", "test"))
    files = list(islice(chain(project.matching(".", "test_*.py"), *in_folders), _MOST_FILES))
    settings = (
        "pytest" in tools
        or project.has("pytest.ini", ".pytest.ini", "pytest.toml")
        or "tool:pytest" in project.sections("setup.cfg")
        or "pytest" in project.sections("tox.ini")
    )
    django = project.has("manage.py") and "DJANGO_SETTINGS_MODULE" in project.text("manage.py")
    if settings or project.has("conftest.py", "tests/conftest.py", "test/conftest.py"):
        yield PlainCommand("python tests", "pytest", f"{before}pytest -q")
    elif project.has("runtests.py", "tests/runtests.py"):
        folder = "" if project.has("runtests.py") else "cd tests && "
        yield PlainCommand("python tests", "runtests", f"{folder}{before}python runtests.py")
    elif django:
        yield PlainCommand("python tests", "django", f"{before}python manage.py test")
    elif any(_PYTEST.search(project.text(path)) for path in files) or any(
        re.search(r"\bpytest\b", project.text(name)) for name in _WITH_REQUIREMENTS
    ):
        if files or project.has_folder("tests"):
            yield PlainCommand("python tests", "pytest", f"{before}pytest -q")
    elif files and not project.has("tox.ini", "noxfile.py", "tox.toml"):
        folder = files[0].partition("/")[0]
        start = f" -s {folder}" if "/" in files[0] and not project.has(f"{folder}/__init__.py") else ""
        yield PlainCommand("python tests", "unittest", f"{before}python -m unittest discover -q{start}")


def _package(project: Project) -> str:
    name = table(project.toml("pyproject.toml").get("project")).get("name")
    if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,80}", name):
        module = name.replace("-", "_").lower()
        for folder in (f"src/{module}", module):
            if project.has(f"{folder}/__init__.py"):
                return "src" if folder.startswith("src/") else folder
    return "src" if project.has_folder("src") else "."

"""Scripts of package.json, run with the project's package manager."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tui_agent.checks.projects.files import Project, table, words
from tui_agent.checks.projects.runners import PlainCommand

_SCRIPTS = (
    "*.js",
    "*.ts",
    "*.jsx",
    "*.tsx",
    "*.mjs",
    "*.cjs",
    "*.mts",
    "*.cts",
    "*.vue",
    "*.svelte",
    "*.json",
)
_TYPED = ("*.ts", "*.tsx", "*.mts", "*.cts", "*.vue", "*.svelte", "*.json")
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
_NAMES = {
    "node tests": ("test", "tests", "test:unit", "unit", "test:ci", "test-ci", "jest", "mocha", "vitest"),
    "node lint": ("lint", "lint:js", "lint:check", "eslint", "xo", "lint:ci"),
    "node types": (
        "typecheck",
        "type-check",
        "types:check",
        "check-types",
        "tsc",
        "test:types",
        "check:types",
        "types",
    ),
}
_RUNNERS = {"vitest": "vitest run", "jest": "jest", "mocha": "mocha", "ava": "ava"}
_ESLINT = ("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc",
           ".eslintrc.json", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.yml", ".eslintrc.yaml")  # fmt: skip
#: Watch scripts, which do not exit, and the options that make them exit.
_WATCHES = re.compile(r"--watch(?!=false|All=false)|\b(?:ng|react-scripts|vue-cli-service) test\b|\bwatch\b")
#: Companion scripts that need a registry or a service, which views lack.
_AWAY = re.compile(
    r"\baud\b|\baudit\b|\bsnyk\b|\bcodecov\b|\bcoveralls\b|\bncu\b|\b(?:npm|pnpm|yarn) (?:ci|i|install|publish)\b"
)
_BUILDS = re.compile(r"\b(?:build|compile|tsc|babel|rollup|webpack|esbuild|tsup|swc|generate|codegen)\b")
#: Runs one script, possibly with arguments; runners' settings that end a run at a failure.
_ONE_SCRIPT = re.compile(
    r"(?:CI=\w+ )?(?P<manager>npm|pnpm|yarn)(?: run)? (?P<script>[\w:.-]{1,60})(?P<given> [^|&;<>`$]{0,400})?"
)
_RUNNER = re.compile(
    r"\s{0,20}(?:[A-Z_]{1,40}=\S{1,80} |cross-env \S{1,80} |npx |c8 |nyc ){0,4}(jest|vitest|mocha)(?![\w./-])"
)
_BAILS = re.compile(r"[\"']?\bbail[\"']?\s{0,20}:\s{0,20}(?:true|[1-9])")
_BAIL_FILES = (".mocharc.json", ".mocharc.jsonc", ".mocharc.yml", ".mocharc.yaml", ".mocharc.js", ".mocharc.cjs",
               "jest.config.js", "jest.config.cjs", "jest.config.mjs", "jest.config.ts", "jest.config.json",
               "vitest.config.js", "vitest.config.mjs", "vitest.config.ts",
               "vite.config.js", "vite.config.ts")  # fmt: skip
_OTHER_SCRIPT = re.compile(r"npm run (?:-s |--silent )?([\w:.-]{1,60})")
MOST_GLOBS = 200
_NONE = re.compile(r"no test specified|^\s*(?:exit|true|:)(?:\s+\d+)?\s*$|^\s*echo [^&|;]*$")
#: Runs the script of the same name in every package.
DELEGATES = re.compile(
    r"(?:npm (?:run )?[\w:-]+ (?:-ws|--workspaces)|npm (?:-ws|--workspaces) (?:run )?[\w:-]+"
    r"|pnpm (?:-r|--recursive|recursive)(?: --no-bail| --no-sort| --if-present)*(?: run)? [\w:-]+"
    r"|yarn workspaces (?:run|foreach(?: -[-\w]+)* run) [\w:-]+)(?: --if-present| --stream| --parallel)*"
)


def package_manager(project: Project) -> str:
    """Returns the manager in `packageManager`, otherwise that of the lock file."""
    named = project.json("package.json").get("packageManager")
    if isinstance(named, str) and (name := named.partition("@")[0]) in ("npm", "pnpm", "yarn", "bun"):
        return name
    return next((program for lock, program in _LOCKS.items() if project.has(lock)), "npm")


def node_checks(project: Project) -> Iterator[PlainCommand]:
    package = project.json("package.json")
    if not project.has("package.json"):
        if project.has("deno.json", "deno.jsonc"):
            own = table(project.json("deno.json").get("tasks")).get(
                "test"
            )  # includes the permissions of tests
            yield PlainCommand("node tests", "deno", "deno task test" if own else "deno test")
        return
    manager = package_manager(project)
    scripts = node_scripts(project)
    tests = _script(scripts, "node tests")
    covered = scripts.get(tests, "")
    if tests:
        yield PlainCommand("node tests", "test", _run(manager, tests, scripts))
    elif package_globs(project):
        yield PlainCommand("node tests", "test", everywhere(manager, "test", project))
    elif runner := next((one for one in _RUNNERS if one in table(package.get("devDependencies"))), ""):
        yield PlainCommand("node tests", runner, f"{executes(manager)} {_RUNNERS[runner]}")
    elif manager == "bun":
        yield PlainCommand("node tests", "bun", "bun test")
    lint = _script(scripts, "node lint")
    if lint and not _calls(covered, lint, ("eslint", "xo", "standard", "biome")):
        yield PlainCommand("node lint", lint, _run(manager, lint, scripts), _SCRIPTS)
    elif not lint and project.has(*_ESLINT) and not re.search(r"\beslint\b", covered):
        yield PlainCommand("node lint", "eslint", f"{executes(manager)} eslint .", _SCRIPTS)
    types = _script(scripts, "node types")
    if types and not _calls(covered, types, ("tsc",)):
        yield PlainCommand("node types", types, _run(manager, types, scripts), _TYPED)
    elif not types and project.has("tsconfig.json") and not re.search(r"\btsc\b", covered):
        yield PlainCommand("node types", "tsc", f"{executes(manager)} tsc --noEmit", _TYPED)


def node_scripts(project: Project) -> dict[str, str]:
    scripts = table(project.json("package.json").get("scripts"))
    return {
        name: script
        for name, script in scripts.items()
        if isinstance(script, str) and re.fullmatch(r"[\w:.-]{1,60}", name)
    }


def _script(scripts: dict[str, str], kind: str) -> str:
    names = [name for name in _NAMES[kind] if name in scripts and not _NONE.search(scripts[name])]
    if kind != "node tests":
        names = [name for name in names if not re.search(r"--fix\b|--write\b", scripts[name])]
    return next((name for name in names if not _WATCHES.search(scripts[name])), names[0] if names else "")


def _run(manager: str, name: str, scripts: dict[str, str]) -> str:
    script = scripts[name]
    run = f"{manager} test" if name == "test" and manager != "bun" else f"{manager} run {name}"
    before, behind = scripts.get(f"pre{name}", ""), scripts.get(f"post{name}", "")
    if manager == "npm" and _AWAY.search(f"{before} {behind}"):
        other = _OTHER_SCRIPT.fullmatch(script.strip())
        alone = f"npm run {other[1]}" if other and other[1] in scripts else f"{run} --ignore-scripts"
        built = _BUILDS.search(before) and not _AWAY.search(before)
        return f"npm run pre{name} && {alone}" if built else alone
    between = " --" if manager == "npm" else ""
    if option := _without_bail(script):  # tests after an old failure would not run
        return f"{run}{between} {option}"
    if "react-scripts test" in script:
        return f"CI=true {run}"
    if re.search(r"\bng test\b", script):
        return f"{run}{between} --watch=false"
    if re.search(r"\bjest\b.*--watch", script):
        return f"{run}{between} --watchAll=false"
    return run


def _without_bail(script: str, settings: str = "") -> str:
    """Returns the option that makes a script's last program go on after a failure, if it or its settings say
    otherwise.
    """
    last = re.split(r"&&|[;|]", script)[-1]
    runner = re.search(r"\b(mocha|jest|vitest)\b", last)
    if runner is None or not (re.search(r" (?:--bail\b|-b\b)", last) or _BAILS.search(settings)):
        return ""
    return "--no-bail" if runner[1] == "mocha" else "--bail=0"


def going_on_option(command: str, project: Project) -> str:
    """Returns words that make a package script go on after a failure, or ""."""
    named = _ONE_SCRIPT.fullmatch(command)
    package = project.json("package.json")
    script = table(package.get("scripts")).get(named["script"] if named else "")
    if named is None or not isinstance(script, str):
        return ""
    runners = [json.dumps({name: package.get(name)}) for name in ("mocha", "jest")]
    settings = "\n".join([*map(project.lines, _BAIL_FILES), *runners])
    option = _without_bail(script, settings)
    if not option or re.search(r"(?:^| )--(?:no-)?bail\b", named["given"] or ""):
        return ""
    return option if named["manager"] != "npm" or " -- " in command else f"-- {option}"


def script_runner(command: str, project: Project) -> str:
    """Returns the runner that is the last program of a package script, or ""."""
    named = _ONE_SCRIPT.fullmatch(command)
    script = node_scripts(project).get(named["script"], "") if named else ""
    found = _RUNNER.match(re.split(r"&&|[;|]", script)[-1])
    return found[1] if found else ""


def _calls(script: str, name: str, programs: tuple[str, ...]) -> bool:
    return bool(
        re.search(rf"(?:run|run-s|run-p|npm-run-all|yarn|pnpm)(?: [\w:-]+)* {re.escape(name)}\b", script)
        or any(re.search(rf"(?:^|[&|;] *)(?:npx )?{program}\b", script) for program in programs)
    )


def executes(manager: str) -> str:
    """Returns the words that run a program of the project's packages without downloads."""
    return {"pnpm": "pnpm exec", "yarn": "yarn run", "bun": "bun run"}.get(manager, "npx --no-install")


def package_globs(project: Project) -> list[str]:
    named = project.json("package.json").get("workspaces")
    if isinstance(named, dict):
        named = named.get("packages")
    found = words(named)
    for line in project.lines("pnpm-workspace.yaml").partition("packages:")[2].splitlines()[1:MOST_GLOBS]:
        item = re.match(r"[ \t]*- *['\"]?([^'\"#]+?)['\"]?\s*(?:#.*)?$", line[: MOST_GLOBS + 1])
        if item is None or len(line) > MOST_GLOBS:
            if line.strip() and not line.lstrip().startswith("#"):
                break
            continue
        found.append(item[1])
    return found


def everywhere(manager: str, script: str, project: Project) -> str:
    match manager:
        case "pnpm":
            # Sorted, it would leave out packages that use a failed one.
            return f"pnpm -r --no-bail --no-sort --if-present run {script}"
        case "yarn":
            berry = project.has(".yarnrc.yml")
            return f"yarn workspaces foreach -A run {script}" if berry else f"yarn workspaces run {script}"
        case "bun":
            return f"bun run --filter '*' {script}"
    return f"npm run {script} --workspaces --if-present"

"""Paths that are only touched after the person was asked: what holds secrets, and what governs programs."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SECRET_NAMES = _words("""
    .env .env.* *.env .envrc *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.gpg *.asc
    id_rsa* id_dsa* id_ecdsa* id_ed25519* credentials credentials.* .credentials* *credentials.json
    client_secret*.json service-account*.json service_account*.json .netrc _netrc .npmrc .pypirc .pgpass
    .my.cnf .htpasswd .git-credentials .dockercfg .vault-token secret secrets secret.* secrets.*
    *.tfstate *.tfstate.backup *.tfvars kubeconfig
""")
_SECRET_FOLDERS = _words(".ssh .gnupg .aws .azure .kube .docker .password-store .gcloud")
#: A pattern to copy from, or the public half of a key.
_SAMPLES = _words("*.example *.sample *.template *.tmpl *.dist *.defaults *.pub *.example.* *.sample.*")
#: Code and prose that merely deal with secrets.
_CODE = _words("*.py *.ts *.tsx *.js *.jsx *.go *.rs *.java *.rb *.md *.rst *.html")

_RULES = _words("""
    agents.md agent.md tui_agent.md kodelet.md claude.md claude.local.md gemini.md conventions.md
    copilot-instructions.md .cursorrules .windsurfrules .clinerules .roorules .roomodes .goosehints
    .aider.conf.yml .mcp.json
""")
_EDITORS_AND_BUILDS = _words("""
    .editorconfig .exrc .nvimrc .nvim.lua .vimrc .lvimrc .dir-locals.el *.code-workspace .gitlab-ci.yml
    .travis.yml .drone.yml .appveyor.yml appveyor.yml .cirrus.yml jenkinsfile azure-pipelines.yml
    bitbucket-pipelines.yml .woodpecker.yml .pre-commit-config.yaml lefthook.yml .lefthook.yml codeowners
    .gitattributes .gitmodules .gitconfig .npmrc .yarnrc .yarnrc.yml
""")
_SHELLS = _words("""
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin
    .zlogout .kshrc .cshrc .tcshrc .login .inputrc config.fish .envrc .tmux.conf .screenrc .mise.toml mise.toml
""")
_GOVERNING_NAMES = _RULES + _EDITORS_AND_BUILDS + _SHELLS
_GOVERNING_FOLDERS = _words("""
    .tui-agent .git .vscode .idea .zed .fleet .vim .nvim .devcontainer .cursor .claude .gemini .codex .roo
    .clinerules .windsurf .continue .kodelet .opencode .github .gitlab .circleci .buildkite .woodpecker .ci
    .husky .githooks
    """)


def is_secret(path: str) -> bool:
    """Whether a path looks as if it held keys or passwords (X1); `.env.example` and the like do not."""
    *folders, name = _components(path)
    if any(folder in _SECRET_FOLDERS for folder in folders):
        return not name.endswith(".pub")
    if _fits(name, _SAMPLES) or (not name.startswith(".") and _fits(name, _CODE)):
        return False
    return _fits(name, _SECRET_NAMES)


def governs(path: str) -> bool:
    """Whether a file steers an agent, an editor, git, a build server or a shell, so that writing it needs asking.

    Source of the rule: lesson 25, the agent must not edit what governs it.
    """
    *folders, name = _components(path)
    return any(folder in _GOVERNING_FOLDERS for folder in (*folders, name)) or _fits(name, _GOVERNING_NAMES)


def _components(path: str) -> tuple[str, ...]:
    return PurePosixPath(path.casefold()).parts or ("",)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

"""Which paths look like secrets, and which govern what programs do."""

from __future__ import annotations

import pytest

from tui_agent.files.gate import governs, is_secret


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env", ".env.local", ".ENV", "prod.env", "key.pem", "a/server.key", "id_rsa", "x/id_ed25519",
     "credentials", ".aws/credentials", ".aws/config", "credentials.json", ".netrc", "secrets.yaml", ".ssh/anything",
     "infra/terraform.tfstate", ".env.production.ts", "gcloud-credentials.json"],
)  # fmt: skip
def test_secret(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    [".env.example", ".env.sample", ".env.local.example", "id_rsa.pub", ".ssh/id_rsa.pub", "src/environment.py",
     "secrets.py", "credentials.ts", "docs/secrets.md", "keyboard.py", "monkey.txt", "a.py", "env/x.py", "", "."],
)  # fmt: skip
def test_not_secret(path: str) -> None:
    assert not is_secret(path)


@pytest.mark.parametrize(
    "path",
    ["AGENTS.md", "sub/claude.md", ".cursorrules", ".cursor/rules/x.mdc", ".vscode/tasks.json", ".idea/x.xml",
     ".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".bashrc", "home/.zshrc", ".envrc", ".gitattributes",
     ".pre-commit-config.yaml", ".tui-agent/settings.toml", "deep/.git/config", ".ci/run"],
)  # fmt: skip
def test_governing(path: str) -> None:
    assert governs(path)


@pytest.mark.parametrize("path", ["src/agents.py", "README.md", "vscode/x.json", "github/x", "bashrc.md", ""])
def test_not_governing(path: str) -> None:
    assert not governs(path)

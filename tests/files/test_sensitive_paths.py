"""Which paths look like secrets, and which govern what programs do."""

from __future__ import annotations

import pytest

from tui_agent.files.sensitive_paths import governs, is_secret


def words(text: str) -> list[str]:
    return text.split()


SECRET = (
    *words("""
.env a/.env .env.local .ENV prod.env key.pem a/server.key id_rsa x/id_ed25519 credentials .aws/credentials
.aws/config credentials.json .netrc secrets.yaml .ssh/anything infra/terraform.tfstate .env.production.ts
gcloud-credentials.json AuthKey_AB12.p8 auth.json .config/gh/hosts.yml gh/hosts.yml .s3cfg .boto
app/google-services.json shop-firebase-adminsdk-x1.json firebase-adminsdk.json wp-config.php wp-config-prod.php
wg0.conf wg-home.conf .terraformrc passwords passwords.txt Passwords.xlsx password.csv token token.txt
config/tokens.json themes/.env
tokens.json token_backup.txt .pgpass .pgpass.old appsettings.Production.json .env~ .env.bak .env.old .env.orig
.env.save .env.swp .env.1 .env-prod .env_old .env.production id_rsa.old id_rsa~ .id_rsa.swp id_work id_github
server.pem.2024-01-31 .env.bak.bak #.env# .#.env secrets.yml.bak service-account.json my-service-account-1.json
client_secret_1.apps.json .npmrc .git-credentials kubeconfig .kube/config prod.tfvars api_keys.json github_token
access_token.txt .github-token .vault_pass.txt .htpasswd .bash_history wallet.dat k8s/db-secret.yaml
secrets/db.txt .docker/config.json local.settings.json .ENV. .Env.Local ID_RSA WP-CONFIG.PHP AUTH.JSON
application-prod.yml rclone.conf deploy_rsa vault-password ssh_host_rsa_key
    """),
    "id_rsa (1)", ".env copy", ".env (2)", "credentials (3).json", "Copy of .env", "auth copy.json", ".env ",
    ".env\n", ".env\n.local",
    "service-account - copy.json", "\uff0eenv", "\u200b.env",
)  # fmt: skip

PLAIN = (
    *words("""
.env.example .env.sample .env.local.example id_rsa.pub .ssh/id_rsa.pub src/environment.py secrets.py
credentials.ts docs/secrets.md keyboard.py monkey.txt a.py env/x.py . token.py tokenizer.ts passwords_test.go
tokenizer.json tokenizer_config.json tokenization.txt special_tokens_map.json design-tokens.json tokens.css
token.rs Token.java passwords.rb test_passwords.py password.html secret.go hosts.yml inventory/hosts.yml
.env.schema .env.d.ts src/theme/tokens.json design/token.yaml
locales/en/auth.json i18n/passwords.json src/auth/index.ts wp-config-sample.php appsettings.json
appsettings.Development.json secrets/README.md src/secrets/handler.go package.json package-lock.json Cargo.lock
keys.toml config/keys.toml public.txt backup.txt notes.bak main.py~ README.md.orig id_mapping.csv env.d.ts
.envoy.yaml key.ts hotkeys.json keymap.json .secrets.baseline terraform.tf monkey.key.ts environment.yml
.gitignore settings.toml foo_test.py.bak wgpu.toml author.json oauth.md
    """),
    "", "notes (1).txt",
)  # fmt: skip


@pytest.mark.parametrize("path", SECRET)
def test_secret(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize("path", PLAIN)
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

"""Paths that need the user's permission, by name only: secrets, and files that control programs. `judge`
applies it to all names of a file; `masking` checks contents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import cached_property

from tui_agent.files.lazy_regex import late


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class _AnyGlob:
    """Globs in one expression; an entry that begins with `^` is an expression. Compiled at first use: that
    takes 10 ms."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        parts = (
            pattern[1:] + r"\Z" if pattern.startswith("^") else translate(pattern)
            for pattern in self._patterns
        )
        return re.compile("|".join(f"(?:{part})" for part in parts)).match


_DATA = (
    r"(?:\.(?:txt|text|jsonl?|ya?ml|csv|tsv|ini|cfg|conf|config|toml|xml|plist|properties"
    r"|dat|data|db|kdb|lst|list|enc|log|xlsx?|ods))?"
)
_WHOSE = r"(?:[a-z0-9]+[._-])*"
_KIND = r"(?:api|access|auth|refresh|bearer|id|bot|deploy|session|github|gitlab|gh|slack|npm|pypi|hf)"

_SECRET_NAMES = _AnyGlob(
    _words(r"""
    .env .env[._-]* *.env env.local .envrc .flaskenv .dev.vars .prod.vars
    *.pem *.key *.p8 *.p12 *.pfx *.pkcs12 *.pkcs8 *.jks *.jceks *.bks *.keystore *.truststore *.kdb *.kdbx *.ppk
    *.gpg *.pgp *.asc *.agekey *.keytab *.pvk *.keychain *.keychain-db *.ovpn *.mobileprovision *.nk *.creds
    id_rsa* id_dsa* id_ecdsa* id_ed25519* id_xmss* ^id_[\w-]+ *_rsa *_dsa *_ecdsa *_ed25519 ssh_host_*_key
    credentials credentials.* .credentials* *credentials.json *credentials.csv *credentials.xml .creds creds creds.*
    *credentials.tfrc.json .netrc* _netrc* .authinfo* .npmrc .pypirc .pgpass* pgpass.conf .my.cnf .mylogin.cnf
    .htpasswd* htpasswd .git-credentials* .gitcredentials .dockercfg .dockerconfigjson .vault-token .vault_pass*
    .vault-pass* vault_pass* vault-pass* .smbcredentials .passwd-s3fs passwd-s3fs .msmtprc .fetchmailrc
    client_secret*.json *service-account*.json *service_account*.json *serviceaccount*.json gha-creds-*.json
    application_default_credentials.json google-services*.json googleservice-info*.plist *firebase-adminsdk*.json
    .s3cfg* .boto* s3cmd.ini rclone.conf .rclone.conf .ossutilconfig .databrickscfg .sentryclirc kaggle.json
    access_tokens.db accesstokens.json msal_token_cache* azureprofile.json
    auth.json wp-config*.php localsettings.php local.settings.json sftp.json sftp-config.json .ftpconfig winscp.ini
    filezilla.xml recentservers.xml sitemanager.xml settings-security.xml parameters.local.yml
    ^appsettings\.(?:prod|production|stag|stage|staging|local|live|uat|secrets?)\.json
    ^application-(?:prod|production|stage|staging|local|live|secrets?)\.(?:ya?ml|properties)
    wg*.conf wireguard*.conf .terraformrc terraform.rc *.tfrc *.tfstate *.tfstate.* *.tfvars *.tfvars.json
    kubeconfig kubeconfig.* *.kubeconfig kube.config
    secret secrets secret.* secrets.* .secrets* *.secret *.secrets
    ^.+[._-]secrets?\.(?:ya?ml|json|toml|ini|txt|env|properties)
    shadow shadow- gshadow wallet.dat *.wallet logins.json key3.db key4.db signons.sqlite
    .bash_history .zsh_history .sh_history .history .psql_history .mysql_history .rediscli_history .rediscli_auth
    .python_history .node_repl_history .xauthority
    """)
)
#: Personal credential notes.
_NOTED = _AnyGlob(
    (
        rf"^\.?(?:tokens?|passwords?|passwds?|passphrases?)(?:[._-][a-z0-9._-]+?)?{_DATA}",
        rf"^\.?{_WHOSE}{_KIND}[._-]?(?:tokens?|keys?){_DATA}",
        rf"^\.?{_WHOSE}(?:tokens?|passwords?|passwd|passphrase)",
    )
)
#: Secret only in a specific program's folder.
_SECRET_PLACES = _AnyGlob(
    _words("""
    */gh/hosts.yml */gh/hosts.yaml */.config/hub */glab-cli/config.yml */.m2/settings.xml */.cargo/credentials*
    */.gem/credentials */.huggingface/token */.config/gcloud/* */.pip/pip.conf
    """)
)
#: Folders whose contents are secret: all except public keys, or all except code and prose.
_HIDDEN_FOLDERS = frozenset(
    _words("""
    .ssh .gnupg .aws .azure .kube .docker .password-store .gcloud .oci .terraform.d .kaggle .snowflake .chef .secrets
    """)
)
_SECRET_FOLDERS = frozenset(("secrets",))
#: Credential stores with names that no library ships; without `*.pem` and `auth.json`.
_STORE_NAMES = frozenset(
    _words("""
    .env .envrc .netrc _netrc .npmrc .pypirc .git-credentials .gitcredentials .pgpass pgpass.conf .my.cnf .mylogin.cnf
    .dockercfg .dockerconfigjson .vault-token .s3cfg .boto .condarc .terraformrc rclone.conf .smbcredentials
    .bunfig.toml credentials .credentials credentials.toml credentials.json credentials.tfrc.json client_secret.json
    pip.conf pip.ini .htpasswd .authinfo .authinfo.gpg kubeconfig .databrickscfg .sentryclirc kaggle.json .yarnrc
    .yarnrc.yml nuget.config id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk terraform.tfstate .xauthority
    .rediscli_auth .bash_history .zsh_history .sh_history .psql_history .mysql_history .python_history
    .node_repl_history
    """)
) | {
    f"{name}.{ending}"
    for name in ("credentials", ".credentials", "secrets", ".secrets")
    for ending in _words("yml yaml toml ini cfg conf properties csv env json xml txt")
}
_STORE_PLACES = _AnyGlob(
    _words("""
    *.kdbx *.ppk *.keytab *.tfstate *.tfvars *.env
    */.m2/settings*.xml */.cargo/config */.cargo/config.toml */.cargo/credentials*
    */uv/credentials/* */composer/auth.json */.composer/auth.json */containers/auth.json */pypoetry/auth.toml
    */pypoetry/config.toml */.bundle/config */.gem/credentials */.gradle/gradle.properties */.sbt/*credentials*
    */.ivy2/.credentials */.hex/*.config */.hex/*.keys */pnpm/rc */pnpm/auth.ini */gh/hosts.yml */.config/hub
    */glab-cli/config.yml */.conda/*token* */binstar/*.token */anaconda-client/*.token */.pip/pip.conf */go/env
    */.config/gcloud/* */.huggingface/token */huggingface/token */huggingface/stored_tokens */.npm/_logs/*
    */.git/git-crypt/* */.git/annex/creds/* */.git/modules/*/git-crypt/* */.gem/*credentials*
    """)
)
_STORE_FOLDERS = late(
    r"/\.(?:m2|cargo|composer|bundle|gem|gradle|sbt|ivy2|hex|conda|pip|huggingface|git|npm|ssh|gnupg|aws|azure|kube|docker"
    r"|password-store|gcloud|oci|terraform\.d|kaggle|snowflake|chef|secrets|config)(?:/|$)"
    r"|/(?:uv/credentials|composer|containers|pypoetry|pnpm|gh|glab-cli|binstar|anaconda-client|go|huggingface)(?:/|$)"
)
_STORE_ENDINGS = (
    *(".kdbx", ".ppk", ".keytab", ".tfstate", ".tfvars", ".env"),
    *("~", ".bak", ".backup", ".old", ".orig", ".save", ".copy", ".swp"),
)
#: Templates, and public keys.
_SAMPLES = _AnyGlob(
    _words("""
    *.example *.sample *.template *.tmpl *.dist *.defaults *.pub *.example.* *.sample.* *.template.* *-sample.*
    *-example.* example.env sample.env template.env .secrets.baseline .env.schema *.env.d.ts .env.d.ts
    """)
)
#: Code and prose about secrets.
_CODE = _AnyGlob(
    _words("""
    *.py *.pyi *.pyx *.ts *.tsx *.mts *.cts *.js *.jsx *.mjs *.cjs *.vue *.svelte *.astro *.go *.rs *.java *.kt *.kts
    *.scala *.groovy *.clj *.cljs *.rb *.erb *.php *.c *.h *.cc *.cpp *.cxx *.hpp *.hh *.m *.mm *.swift *.cs *.fs *.vb
    *.lua *.pl *.pm *.r *.jl *.ex *.exs *.erl *.hrl *.hs *.ml *.mli *.elm *.dart *.zig *.nim *.v *.sol *.sh *.bash
    *.zsh *.fish *.ps1 *.bat *.tf *.nix *.sql *.graphql *.proto *.css *.scss *.sass *.less *.html *.htm *.md *.mdx
    *.rst *.adoc *.tex *.ipynb *.svg *.png *.jpg *.jpeg *.gif *.ico *.lock *.snap *.map
    """)
)
#: Code that holds the keys of an installation.
_SECRET_CODE = _AnyGlob(_words("wp-config*.php localsettings.php"))
#: Model vocabularies, designs, password pages.
_OTHER_SENSE = late(
    r"(?:design|css|style|theme|color|special|added|stop)[._-]?tokens?\b.*|tokeni[sz].*"
    r"|.*[._-](?:reset|forgot|rules|policy)\b.*"
)
#: Translations are named after pages: `locales/en/auth.json`.
_LANGUAGES = frozenset(
    _words("locale locales lang langs language languages i18n l10n intl translation translations")
)
_WORDS_OF_PAGES = late(
    r"(?:auth|token|tokens|password|passwords|secret|secrets|credentials)\.(?:json|ya?ml|properties)"
)

#: Design tokens: `src/theme/tokens.json`.
_DESIGNS = frozenset(_words("design designs theme themes style styles css ui design-system design-tokens"))
_WORDS_OF_DESIGN = late(r"tokens?\.(?:json|ya?ml)")

#: Backup and copy suffixes.
_COPY = late(
    r"(?P<before>.+?)(?:~|\.(?:bak|backup|back|bkp|bk|old|orig|original|save|saved|swp|swo|swn|tmp|temp|copy|prev"
    r"|rej|disabled|off|rpmsave|rpmnew|dpkg-old|dpkg-dist|ucf-old|\d{1,14}|\d{4}-\d\d-\d\d)"
    r"|[ _-](?:bak|backup|old|orig|copy|kopie)\d{0,3}|[ _-]?\(\d{1,3}\)|(?: - copy| copy)(?: \d{1,3})?"
    r"|[ _-]\d{1,14}|[ _-]\d{4}-\d\d-\d\d)"
)
_COPY_INSIDE = late(
    r"(?P<before>.+?)(?:[ ._-](?:bak|backup|old|orig|copy)\d{0,3}|[ _-]?\(\d{1,3}\)| - copy| copy(?: \d{1,3})?)"
    r"(?P<after>\.[a-z0-9]{1,12})"
)
_COPIES_OF_COPIES = 4

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
_GOVERNING_NAMES = _AnyGlob(_RULES + _EDITORS_AND_BUILDS + _SHELLS)
_GOVERNING_FOLDERS = frozenset(
    _words("""
    .tui-agent .git .vscode .idea .zed .fleet .vim .nvim .devcontainer .cursor .claude .gemini .codex .roo
    .clinerules .windsurf .continue .kodelet .opencode .github .gitlab .circleci .buildkite .woodpecker .ci
    .husky .githooks
    """)
)


def is_secret(path: str) -> bool:
    """Whether it looks like a file with keys or passwords; `.env.example`, `token.py` and similar do not.

    Ignores case, trailing dots, backup and copy suffixes: `.ENV~` and `id_rsa (1)` are secrets.
    """
    *folders, name = _components(path)
    if any(folder in _HIDDEN_FOLDERS for folder in folders):
        return not name.endswith(".pub")
    if _WORDS_OF_PAGES.fullmatch(name) and any(folder in _LANGUAGES for folder in folders):
        return False
    if _WORDS_OF_DESIGN.fullmatch(name) and any(folder in _DESIGNS for folder in folders):
        return False
    return any(_holds_secrets(folders, each) for each in _without_copying(name))


def is_store(path: str) -> bool:
    """As `is_secret` among third-party files: certificates and test keys do not count."""
    *folders, name = _components(path)
    if _SAMPLES.match(name):
        return False
    if any(folder in _HIDDEN_FOLDERS for folder in folders):
        return True
    return any(
        each in _STORE_NAMES
        or each.startswith(".env.")
        or _STORE_PLACES.match("/".join(("", *folders, each)))
        for each in _without_copying(name)
    )


def stores_in(folder: str, names: Iterable[str]) -> list[str]:
    """Names for which `is_store` is true; fast if almost none match."""
    telling = bool(_STORE_FOLDERS.search(folder.casefold()))
    return [
        name
        for name in names
        if (telling or (low := name.casefold().rstrip(". ")) in _STORE_NAMES or low.startswith(".env")
            or low.endswith(_STORE_ENDINGS) or not name.isascii()) and is_store(f"{folder}/{name}")
    ]  # fmt: skip


def is_sample(path: str) -> bool:
    """A template, such as `.env.example`."""
    return bool(_SAMPLES.match(_components(path)[-1]))


def governs(path: str) -> bool:
    """Whether it controls an agent, an editor, git, a build server or a shell, so that writes need
    permission."""
    *folders, name = _components(path)
    return any(folder in _GOVERNING_FOLDERS for folder in (*folders, name)) or bool(
        _GOVERNING_NAMES.match(name)
    )


def _holds_secrets(folders: list[str], name: str) -> bool:
    if _SAMPLES.match(name):
        return False
    if not name.startswith(".") and _CODE.match(name):
        return bool(_SECRET_CODE.match(name))
    if _SECRET_NAMES.match(name) or any(folder in _SECRET_FOLDERS for folder in folders):
        return True
    if _NOTED.match(name) and not _OTHER_SENSE.match(name):
        return True
    return bool(_SECRET_PLACES.match("/".join(("", *folders, name))))


def _without_copying(name: str) -> Iterator[str]:
    """The name, and the originals of backups and copies."""
    yield name
    for _ in range(_COPIES_OF_COPIES):
        before = _original(name)
        if before == name:
            return
        name = before
        yield name
        if name.startswith(".") and not name.startswith(".env"):
            yield name[1:]  # swap files: `.id_rsa.swp`


def _original(name: str) -> str:
    for marked in (_COPY.fullmatch(name), _COPY_INSIDE.fullmatch(name)):
        if marked:
            return marked["before"] + marked.groupdict().get("after", "")
    if name.startswith("#") and name.endswith("#"):
        return name.strip("#")
    for beginning in (".#", "copy of ", "backup of "):
        if name.startswith(beginning):
            return name.removeprefix(beginning)
    return name


def _components(path: str) -> tuple[str, ...]:
    if not path.isascii():
        path = "".join(c for c in unicodedata.normalize("NFKC", path) if unicodedata.category(c) != "Cf")
    parts = [part for part in path.casefold().replace("\n", ".").split("/") if part not in ("", ".")]
    return (*parts[:-1], parts[-1].rstrip(". ")) if parts else ("",)

"""Which values of a file can be secrets, and that they are found again in any form and nothing else is."""

from __future__ import annotations

import base64
import pickle
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from support.trees import make_tree

from tui_agent.files import known_secrets, secret_values
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.files.masking import MASK
from tui_agent.files.secret_files import SecretFiles
from tui_agent.files.secret_values import SecretValues, Value, values_in, values_of_bytes

SECRETS = {
    "DB_PASSWORD=hunter2-Horse": ["hunter2-Horse"],
    "API_TOKEN='canary-secret-alpha'  # of the test": ["canary-secret-alpha"],
    "export SOMETHING=q8Zt77xLmPw2vB": ["q8Zt77xLmPw2vB"],
    "# OLD_TOKEN=zz99yy88xx77": ["zz99yy88xx77"],
    "DATABASE_URL=postgres://u:p4ssw0rd@host/db": ["p4ssw0rd"],
    "URLS=redis://localhost:6379/0,mysql://root:p%40ss%2Fword1@h": ["p%40ss%2Fword1", "p@ss/word1"],
    "APP_KEY=base64:kQ3zX1mV8nP5rT7yU9iO2aS4dF6gH8jK0lZxCvBnM1Q=": [
        "kQ3zX1mV8nP5rT7yU9iO2aS4dF6gH8jK0lZxCvBnM1Q="
    ],
    "CLIENT_SECRET=550e8400-e29b-41d4-a716-446655440000": ["550e8400-e29b-41d4-a716-446655440000"],
    "PASSPHRASE='correct horse battery staple'": ["correct horse battery staple"],
    "production:\n  secret_key_base: 3f786850e387550fdab836ed7e6dc881de23001b": [
        "3f786850e387550fdab836ed7e6dc881de23001b"
    ],
    "machine api.example.com login joe password s3cr3t-Pass99": ["s3cr3t-Pass99"],
    "https://joe:glpassw0rd-77@gitlab.example.com": ["glpassw0rd-77"],
    '{"user": "joe", "password": "sw0rdf1sh"}': ["sw0rdf1sh"],
    "<server><username>joe</username><password>My-Passw0rd!x</password></server>": ["My-Passw0rd!x"],
    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBc7Q4pV2\nqJtXw9Zk=\n-----END EC PRIVATE KEY-----": [
        "MHcCAQEEIBc7Q4pV2"
    ],
    '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkq\\nBKcwggSjAgEA\\n-----END PRIVATE KEY-----\\n"}': [
        "MIIEvQIBADANBgkq",
        "BKcwggSjAgEA",
    ],
}
#: Ordinary values, as such files have them; none of them may be masked anywhere.
ORDINARY = """
PORT=8080 DEBUG=true NAME=app APP_ENV=production LOG_LEVEL=debug SECRET_KEY=changeme DB_PASSWORD=postgres
SECRET=short TOKEN=abc1234 SOMETHING=q8Zt77xLmPw MINIO_ROOT_PASSWORD=minioadmin NEXTAUTH_SECRET=your_nextauth_secret
SECRET_KEY_BASE=please-generate-with-mix-phx-gen-secret JWT_SECRET=my-super-secret-key API_KEY=<your-key-here>
API_KEY=sk-... DB_PASSWORD=${POSTGRES_PASSWORD} WORDPRESS_DB_PASSWORD=wordpress
DJANGO_SECRET_KEY=django-insecure-change-me REDIS_URL=redis://localhost:6379/0 DATABASE_URL=postgres://postgres:postgres@localhost:5432/postgres
DB_ENGINE=django.db.backends.postgresql PASSWORD_HASHER=django.contrib.auth.hashers.PBKDF2PasswordHasher
DJANGO_SETTINGS_MODULE=config.settings.production EMAIL=webmaster@example.com HOST=db-1.internal.example.com
AWS_REGION=eu-central-1 TZ=America/New_York S3_BUCKET=my-company-assets-production BUILD=2024-01-15T10:30:00Z
IMAGE=registry.gitlab.com/group/project:latest VERSION=10.11.12-alpine3 MODEL=gpt-4o-mini-2024-07-18
ARN=arn:aws:sns:eu-central-1:123456789012:order-events ACCOUNT=123456789012 TENANT=550e8400-e29b-41d4-a716-446655440000
CI_COMMIT_SHA=9fceb02d0ae598e95dc970b74767f19372d61af8 AMI=ami-0abcdef1234567890 DATA=/var/lib/postgresql/data16
NEXT_PUBLIC_STRIPE_KEY=pk_x9Yz8Wv7Ut6Sr5Qp4On3 SORT_KEY=created_at_timestamp CACHE_KEY=homepage_articles
TOKEN_TYPE=authorization-bearer AUTH_COOKIE_NAME=session_identifier ACCESS_TOKEN_EXPIRE_MINUTES=11520
CORS=http://localhost:3000,http://localhost:5173 BROKERS=kafka-1:9092,kafka-2:9092 FONT=JetBrainsMono
GOOGLE_CLIENT_ID=123456789012-abc123def456.apps.googleusercontent.com KEY_FILE=/etc/ssl/private/server1.key
"""


@pytest.mark.parametrize("text", SECRETS)
def test_what_can_be_a_secret_is_a_value(text: str) -> None:
    assert [value.data.decode() for value in values_in(text, named=True)] == SECRETS[text]


def test_what_cannot_be_one_is_none() -> None:
    for line in ORDINARY.split():
        assert not values_in(line, named=True), line
    certificate = "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkq\n-----END CERTIFICATE-----\n"
    assert not values_in(f"Issuer: CN = Some Authority R3x7Q9z1W5\n{certificate}", named=True)
    assert not values_in("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBc7Q4pV2qJtXw9Zk joe@example.com", named=True)
    assert not values_in("DB_USER=wonderland\nDB_PASSWORD=wonderland\n", named=True)


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, in lines": lambda text: base64.encodebytes(("x" * 50 + text).encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex(" ").upper(),
    "backwards": lambda text: text[::-1],
    "letter by letter": " ".join,
    "in lines": "\n".join,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_found_in_every_form_and_at_every_place(form: str) -> None:
    random.seed(form)
    letters = string.ascii_letters + string.digits + "+/_-!"
    for length in (8, 9, 11, 12, 15, 16, 33, 64, 500):
        secret = "".join(random.choices(letters, k=length))
        secrets = SecretValues({".env": [Value(piece) for piece in _pieces(secret)]})
        for before in range(9):
            coded = FORMS[form]("-" * before + secret)
            clean, names = secrets.masked(f"first {coded} last\n")
            assert clean.startswith("first ") and clean.endswith(" last\n"), (length, before, clean)
            assert names == {".env"} and MASK in clean
            assert clean.count("\n") == coded.count("\n") + 1
            left = "".join(clean.replace(MASK, "").split())
            assert len(left) <= len("firstlast") + len(
                "".join(FORMS[form]("-" * before + "x" * 50).split())
            ), clean


def _pieces(secret: str) -> list[bytes]:
    return [value.data for value in values_in(f"TOKEN={secret}", named=True)] or [secret.encode()]


DUMPS = {
    "xxd": lambda row: row.hex(" ", 2) + "  " + row.decode(),
    "hexdump -C": lambda row: row[:8].hex(" ") + "  " + row[8:].hex(" ") + f"  |{row.decode()}|",
    "hexdump": lambda row: " ".join(row[at : at + 2][::-1].hex() for at in range(0, len(row), 2)),
    "od -c": lambda row: "  ".join(row.decode()),
}


@pytest.mark.parametrize("form", DUMPS)
def test_a_dump_of_a_value_is_masked_by_its_rows(form: str) -> None:
    data = b"PORT=8080, DB_PASSWORD=quokka-7431-Vermilion, APP_ENV=production, and other things\n".replace(
        b"\n", b" "
    )
    rows = [f"{at:08x}: {DUMPS[form](data[at : at + 16])}" for at in range(0, len(data), 16)]
    secrets = SecretValues({".env": [Value(b"quokka-7431-Vermilion")]})
    clean, names = secrets.masked("before\n" + "\n".join(rows) + "\nafter")
    assert names == {".env"}
    assert clean == "\n".join(["before", rows[0], MASK, MASK, *rows[3:], "after"])


@pytest.mark.parametrize(
    "wrapped", [lambda value: value, lambda value: base64.b64encode(value.encode()).decode()]
)
def test_a_long_text_is_looked_through_in_pieces_and_a_value_may_lie_across_two(
    wrapped: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    value, piece = "canary-secret-alpha", 1 << 9
    monkeypatch.setattr(secret_values, "_SLICE", piece)
    values = SecretValues({"a": values_in(f"API_TOKEN={value}", named=True)})
    for before in range(2 * piece - 40, 2 * piece + 4):
        text = f"{'x' * (before - 1)} {wrapped(value)} {'y' * piece}"
        clean, names = values.masked(text)
        assert wrapped(value)[4:-6] not in clean and names == {"a"}, before
    rows = "".join(f"{at:08x}: {value[at : at + 16].encode().hex(' ', 2)}\n" for at in (0, 16))
    for before in range(2 * piece - 20, 2 * piece + 4, 4):
        assert MASK in values.masked(f"{'x' * (before - 1)}\n{rows}{'y' * piece}")[0], before


def test_a_word_of_the_project_is_masked_only_as_a_word_of_its_own() -> None:
    secrets = SecretValues({".env": [Value(b"correcthorse", plain=True)]})
    assert secrets.masked("incorrecthorses")[0] == "incorrecthorses"
    assert secrets.masked("é correcthorse é")[0] == f"é {MASK} é"


def test_many_values_are_bounded_and_shown_by_no_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_values, "MOST_VALUES", 100)
    random.seed(1)
    many = [Value(random.randbytes(9).hex().encode(), is_marked=number % 2 == 0) for number in range(200)]
    secrets = SecretValues({"a": many})
    assert len(secrets) == 100
    assert secrets.masked(many[0].data.decode())[0] == MASK
    assert many[0].data.decode() not in f"{secrets!r}{many[0]!r}{many[:2]}{vars(KnownSecrets())!r}"
    with pytest.raises(TypeError):
        pickle.dumps(secrets)


# ── the values of a folder ──────────────────────────────────────────────────────────────────────────────────────


def masked(secrets: KnownSecrets, text: str, **decisions: str) -> str:
    secrets.look(decisions)
    return secrets.masked(text)


def test_they_follow_the_files_and_are_not_forgotten(tmp_path: Path) -> None:
    make_tree(tmp_path, {".env": "TOKEN=first-Value-11\n", "web/.env.local": "TOKEN=second-Value-22\n"})
    secrets = KnownSecrets(str(tmp_path))
    assert masked(secrets, "first-Value-11 second-Value-22 third-Value-33") == f"{MASK} {MASK} third-Value-33"
    (tmp_path / ".env").write_text("TOKEN=third-Value-33\n")
    (tmp_path / "web" / ".env.local").rename(tmp_path / "web" / "x.txt")
    assert masked(secrets, "first-Value-11 second-Value-22 third-Value-33") == f"{MASK} {MASK} {MASK}"
    assert "web/.env.local" in secrets.pending_notice() and not secrets.pending_notice()


def test_other_roots_other_bytes_links_and_content_count(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    make_tree(
        tmp_path / "a", {"code.py": f"KEY = '{key}'\n", "node_modules/x/.env": "TOKEN=other-Value-44\n"}
    )
    make_tree(tmp_path / "b", {"plain.txt": "TOKEN=linked-Value-55\n"})
    (tmp_path / "a" / ".env").symlink_to(tmp_path / "b" / "plain.txt")
    (tmp_path / "a" / ".env.pipe").mkdir()
    (tmp_path / "a" / "same.txt").write_text("TOKEN=copied-Value-77\n")
    (tmp_path / "a" / ".envrc").write_text("TOKEN=copied-Value-77\n")
    judge = SecretFiles(tmp_path / "a")
    assert {one.why for one in judge.found()} == {"name", "content", "origin"}
    (tmp_path / "a" / ".envrc").unlink()
    secrets = KnownSecrets(str(tmp_path / "a"), judge=judge)
    secrets.add("the commit HEAD", b"TOKEN=tracked-Value-66\n")
    assert masked(secrets, "copied-Value-77") == MASK
    assert masked(secrets, base64.b64encode(key.encode()).decode()) == MASK
    assert masked(secrets, "linked-Value-55 tracked-Value-66 other-Value-44") == f"{MASK} {MASK} {MASK}"


def test_a_file_in_utf_16_is_read_as_what_it_says(tmp_path: Path) -> None:
    text = "TOKEN=wide-Value-88\n"
    (tmp_path / ".env").write_bytes(text.encode("utf-16"))
    secrets = KnownSecrets(str(tmp_path))
    assert masked(secrets, text) == f"TOKEN={MASK}\n"
    printed = text.encode("utf-16").decode("utf-8", "surrogateescape")
    assert masked(secrets, printed).replace("\0", "").endswith(f"TOKEN={MASK}\n")


def test_what_the_project_uses_as_a_word_is_none(tmp_path: Path) -> None:
    files = {f"{name}.py": "LAYOUT = 'wonderland'\n" for name in ("a", "b", "c")}
    sample = {"app/.env.example": "ADMIN_PASSWORD=jabberwocky\n"}
    env = {".env": "ADMIN_PASSWORD=jabberwocky\nTHEME_SECRET=wonderland\nDB_PASSWORD=looking-glass\n"}
    make_tree(tmp_path, {**files, **sample, **env, "d.py": "'looking-glass'\n"})
    secrets = KnownSecrets(str(tmp_path))
    assert masked(secrets, "jabberwocky wonderland looking-glass") == f"jabberwocky wonderland {MASK}"


def test_folders_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_secrets, "MOST_SECRETS", 3)
    make_tree(tmp_path, {f"{n}/.env": f"TOKEN=bounded-Value-{n}{n}\n" for n in range(6)})
    assert len(KnownSecrets(str(tmp_path)).look()) == 3


def test_no_alarm_in_ordinary_projects(tmp_path: Path) -> None:
    """Each has a `.env` with ordinary values, and code that uses them all."""
    lines = ORDINARY.split()
    names = [line.partition("=")[0] for line in lines]
    values = [line.partition("=")[2] for line in lines]
    for number in range(20):
        root = tmp_path / str(number)
        code = "".join(
            f"{name} = settings.get({value!r})\n" for name, value in zip(names, values, strict=True)
        )
        make_tree(root, {".env": "\n".join(lines[number:] + lines[:number]), "settings.py": code})
        secrets = KnownSecrets(str(root))
        assert masked(secrets, code + code.upper() + "\n".join(values)) == code + code.upper() + "\n".join(
            values
        )


def test_a_binary_secret_counts_in_rows_that_differ_within() -> None:
    row = bytes(range(48))
    assert values_of_bytes(row + bytes(48) + row[:20], named=True) == [Value(row), Value(row[:20])]
    assert values_of_bytes(row + bytes(48), named=False) == []

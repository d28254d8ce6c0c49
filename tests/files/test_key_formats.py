"""Keys are told by their form, and nothing that people write in code and prose is taken for one."""

from __future__ import annotations

import base64
import hashlib
import json
import time

import pytest
from support.disguises import PRIVATE_KEY

from tui_agent.files import masking
from tui_agent.files.masking import MASK, hits, hits_masked, may_hold_key, values


def random(letters: int, alphabet: str = "") -> str:
    """Letters that look drawn by lot, and are the same every time."""
    digest = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(12))
    text = base64.b64encode(digest).decode().replace("+", "a").replace("/", "b")
    return ("".join(alphabet[ord(c) % len(alphabet)] for c in text) if alphabet else text)[:letters]


def token(header: dict, claims: dict) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims)
    ]
    return ".".join((*parts, random(43)))


UPPER, HEX = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdef"
KEY_LINES = "\n".join([random(64)] * 3)
KEYS = [
    f"AKIA{random(16, UPPER)}",
    "AKIAIOSFODNN7EXAMPLE",
    f"ghp_{random(36)}",
    f"github_pat_{random(22)}_{random(59)}",
    f"glpat-{random(20)}",
    f"xoxb-123456789012-{random(24)}",
    f"AIza{random(35)}",
    f"sk-proj-{random(48)}",
    f"sk-ant-api03-{random(90)}",
    f"sk-{random(48)}",
    f"sk_live_{random(24)}",
    f"hf_{random(34)}",
    f"npm_{random(36)}",
    f"pypi-AgEIcHlwaS5vcmc{random(80)}",
    f"SG.{random(22)}.{random(43)}",
    f"hvs.{random(24)}",
    f"dop_v1_{random(64, HEX)}",
    token({"alg": "HS256", "typ": "JWT"}, {"sub": "me", "scope": "all"}),
    PRIVATE_KEY.strip(),
    f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{KEY_LINES}\n"
    "-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{KEY_LINES}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----",
]
INNOCENT = [
    'password = "hunter2hunter2"',
    'api_key: "test-key-1234567890"',
    "sk-learn-is-a-library-for-python-and-more",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    'PREFIX = "-----BEGIN RSA PRIVATE KEY-----"',
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg...\n-----END PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\n" + KEY_LINES + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + KEY_LINES + "\n-----END CERTIFICATE-----",
    "sha256-" + random(43),
    "0f2af7b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4",
    "data:image/png;base64," + random(300),
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ."
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    r'r"\bAKIA[A-Z0-9]{16}\b|ghp_[A-Za-z0-9]{36}"',
    "task-0123456789-abcdefghij-klmnopqrst",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "around", ["{}", 'x = "{}"', "a line\n{}\nanother", "KEY={}", "<k>{}</k>", "({})", "{}\r\n"]
)
def test_a_key_is_found_whole_wherever_it_is(key: str, around: str) -> None:
    text = around.replace("{}", key)
    found = hits(text)
    assert [text[hit.start : hit.end] for hit in found] == [key]


@pytest.mark.parametrize("key", KEYS[-3:])
def test_a_private_key_is_found_as_json_and_code_write_it(key: str) -> None:
    for text in (json.dumps({"private_key": key}), '"' + key.replace("\n", '\\n" +\n    "') + '"'):
        assert [hit.what for hit in hits(text)] == ["a private key"], text
    document = json.dumps({"private_key": key, "next": [key, "x"]})
    assert json.loads(hits_masked(document, hits(document))) == {"private_key": MASK, "next": [MASK, "x"]}


def test_what_lets_into_a_package_registry_is_told_by_its_name() -> None:
    for text in (
        'npmAuthToken: "{}"',
        "npmAuthIdent: {}",
        "//r.example.org/:_authToken={}",
        '"//r.example.org/:_password" "{}"',
        '<add key="ClearTextPassword" value="{}" />',
    ):
        whole = text.replace("{}", "hunter:2hunter")
        assert may_hold_key(whole.encode())
        assert hits_masked(whole, hits(whole)) == text.replace("{}", MASK)
        for sample in ("${NPM_TOKEN_1}", "<your-token-1>", "process.env.TOKEN"):
            assert hits(text.replace("{}", sample)) == []


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_a_little_like_a_key_is_none(text: str) -> None:
    assert hits(text) == []


def test_a_mask_changes_no_line() -> None:
    text = f"a\n{PRIVATE_KEY}b = 1\r\nkey = ghp_{random(36)}\r\nc\n"
    clean = hits_masked(text, hits(text))
    assert clean.count("\n") == text.count("\n") and clean.endswith(f"b = 1\r\nkey = {MASK}\r\nc\n")
    assert "BEGIN" not in clean and clean.startswith(f"a\n{MASK}\n")


def test_of_a_secret_file_the_names_stay() -> None:
    text = 'A=1\nexport B = "two words"\n# old: C=3\njust a password\n{\n  "d": "e",\n\n'
    assert hits_masked(text, values(text)) == (
        f'A={MASK}\nexport B = {MASK}\n{MASK}\n{MASK}\n{MASK}\n  "d": {MASK}\n\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "sk-" * 300_000,
        "eyJ" * 300_000,
        "-----BEGIN PRIVATE KEY-----" * 30_000,
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 1_000_000,
        "-----BEGIN PRIVATE KEY-----" + "\\" * 1_000_000,
        "-----BEGIN PRIVATE KEY-----" + "\n \n" * 300_000,
        "-----BEGIN PRIVATE KEY-----\na: b" * 30_000,
        "xoxb-" * 200_000,
        "aws_secret_key=" * 70_000,
        "eyJaaaaaaaaaaaa.eyJ" * 50_000,
        ("A" * 15 + "\n") * 60_000,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_no_text_takes_long(text: str) -> None:
    begun = time.process_time()
    hits(text)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("key", KEYS)
def test_no_key_is_missed_by_the_first_look(key: str) -> None:
    assert may_hold_key(f'first = 1\nkey = "{key}"\n'.encode())


def test_the_first_look_passes_over_what_people_write() -> None:
    assert not may_hold_key(b"a_function_with_a_long_name(support_for_numbers_2, 'sk-learn')\n" * 100)


def test_a_text_in_pieces_has_the_same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "\n".join([random(64)] * 9)
    long = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    text = "sk-".join(f"{key}\n{key} " for key in (*KEYS, long, *INNOCENT))
    whole = [hits(text), hits(text, cut=True)]
    monkeypatch.setattr(masking, "_LONGEST_FORM", 400)
    monkeypatch.setattr(masking, "PIECE", 53)
    assert [hits(text), hits(text, cut=True)] == whole

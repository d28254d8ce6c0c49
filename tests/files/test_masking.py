"""What looks like a secret is masked, and what only looks a little like one is not."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.files.masking import MASK, masked, masked_pieces, masked_values

SECRETS = [
    "sk-proj-abcDEF123456789ghi",
    "sk-ant-api03-abcdefghij0123456789",
    "ghp_abcdefghijklmnop0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_known_shapes(secret: str) -> None:
    assert masked(f"before {secret} after", {}) == f"before {MASK} after"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdefghijklmnop==", f"Authorization: Bearer {MASK}"),
        ('api_key = "correct-horse"', f'api_key = "{MASK}"'),
        ('{"password": "hunter2hunter2"}', f'{{"password": "{MASK}"}}'),
        (r"{\"client_secret\": \"hunter2hunter2\"}", rf"{{\"client_secret\": \"{MASK}\"}}"),
        ("DB_PASSWORD='hunter2hunter2'", f"DB_PASSWORD='{MASK}'"),
    ],
)
def test_values_that_are_given_to_secret_names(text: str, expected: str) -> None:
    assert masked(text, {}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "sk_learn_style_identifier_names",
        "api_key = os.environ['OPENAI_API_KEY']",
        'api_key = "$OPENAI_API_KEY"',
        "the secret: it is simple",
        "hf_transfer_is_enabled_here",
        "basic understanding of it",
        "commit 0f2af7b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4",
    ],
)
def test_code_and_prose_stay_as_they_are(text: str) -> None:
    assert masked(text, {}) == text


def test_values_of_the_environment() -> None:
    environment = {"MY_TOKEN": "plain-words-here", "PATH": "/usr/local/bin", "A_KEY": "short"}
    assert masked("plain-words-here /usr/local/bin short", environment) == f"{MASK} /usr/local/bin short"


@given(st.lists(st.integers(0, 60)), st.sampled_from(SECRETS))
def test_a_secret_in_pieces_is_masked_however_it_was_cut(cuts: list[int], secret: str) -> None:
    text = f"it is {secret} you see"
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[start:end] for start, end in pairwise(edges)]
    clean = masked_pieces(pieces, {})
    assert len(clean) == len(pieces)
    assert "".join(clean) == masked(text, {}) == f"it is {MASK} you see"


@given(st.text(), st.lists(st.integers(0, 40)))
def test_pieces_together_are_always_the_whole(text: str, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[start:end] for start, end in pairwise(edges)]
    assert "".join(masked_pieces(pieces, {})) == masked(text, {})


@pytest.mark.parametrize(
    "words",
    [
        "The file begins with -----BEGIN RSA PRIVATE KEY----- and then come lines of Base64.\nNothing of it is here.",
        "-----BEGIN PRIVATE KEY-----\nis the first line; the rest of this answer must stay as it is",
        '{"summary": "-----BEGIN PRIVATE KEY-----", "message": "the rest", "list": [1, 2]}',
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_the_first_line_of_a_key_masks_nothing(words: str) -> None:
    assert masked(words, {}) == words


def test_a_key_without_its_end_is_masked_as_far_as_it_goes() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    text = f"before -----BEGIN PRIVATE KEY-----\n{line}\n{line}\n\nand after, which stays"
    assert masked(text, {}) == f"before {MASK}\n\nand after, which stays"


SHAPES = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from([*SECRETS, "-----BEGIN PRIVATE KEY-----", 'a "\\n'])
    | st.text().map(lambda text: f"{text}\nkey = {SECRETS[0]} -----BEGIN RSA PRIVATE KEY-----\n{text}"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(SHAPES)
def test_values_are_masked_and_their_shape_stays(value: object) -> None:
    def shape(of: object) -> object:
        match of:
            case list():
                return [shape(item) for item in of]
            case dict():
                return {key: shape(item) for key, item in of.items()}
        return type(of)

    clean = masked_values(value, {})
    assert shape(clean) == shape(value)
    assert all(secret not in json.dumps(clean) for secret in SECRETS[:-1])
    inner = json.dumps({"inner": value})
    assert isinstance(json.loads(masked_values([inner], {})[0]), dict)

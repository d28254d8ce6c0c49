"""What looks like a secret is masked, and what only looks a little like one is not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.model.masking import MASK, masked, masked_pieces

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

"""A tiny language model with random weights in a GGUF file, made without any download: it babbles, and that is enough.

Its vocabulary holds each byte and the pieces that are frequent in a text, so that it counts about as others do.
"""

from __future__ import annotations

import random
import struct
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH, HIDDEN, HEADS, LAYERS = 64, 128, 4, 2
PIECES = 1_500
ALIGNMENT = 32
#: What ends an answer, a text or a list comes so often that answers are short: how much more likely these are.
ENDS, MORE_LIKELY = ("</s>", '"', "]", "}"), 4.5
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}\n{% endfor %}"
    "<|assistant|>\n"
)
_UINT32, _INT32, _FLOAT, _STRING, _ARRAY = 4, 5, 6, 8, 9


def write(path: Path, text: str, window: int) -> None:
    """A model whose vocabulary is made from `text`, trained for `window` tokens, as it says."""
    tokens, scores, kinds = _vocabulary(text)
    facts = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "tiny"),
        "llama.context_length": (_UINT32, window),
        "llama.embedding_length": (_UINT32, WIDTH),
        "llama.block_count": (_UINT32, LAYERS),
        "llama.feed_forward_length": (_UINT32, HIDDEN),
        "llama.attention.head_count": (_UINT32, HEADS),
        "llama.rope.dimension_count": (_UINT32, WIDTH // HEADS),
        "llama.attention.layer_norm_rms_epsilon": (_FLOAT, 1e-5),
        "tokenizer.ggml.model": (_STRING, "llama"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens)),
        "tokenizer.ggml.scores": (_ARRAY, (_FLOAT, scores)),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, kinds)),
        "tokenizer.ggml.bos_token_id": (_UINT32, 1),
        "tokenizer.ggml.eos_token_id": (_UINT32, 2),
        "tokenizer.chat_template": (_STRING, TEMPLATE),
    }
    tensors = _tensors(len(tokens))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(facts))
    head += b"".join(_string(name) + _value(kind, value) for name, (kind, value) in facts.items())
    at, chance = 0, random.Random(1)
    for name, shape in tensors:
        size = 4 * _count(shape)
        head += _string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", 0, at)
        at += -(-size // ALIGNMENT) * ALIGNMENT
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for name, shape in tensors:
            flat = "norm" in name
            values = array("f", (1.0 if flat else chance.gauss(0, 0.1) for _ in range(_count(shape))))
            if (
                name == "token_embd.weight"
            ):  # the first of each token's numbers is the same, and outlasts the layers
                values[::WIDTH] = array("f", [4.0] * len(tokens))
            elif name == "output.weight":
                for place, token in enumerate(tokens):
                    values[place * WIDTH] = MORE_LIKELY / WIDTH**0.5 if token in ENDS else 0.0
            file.write(values.tobytes() + bytes(-4 * len(values) % ALIGNMENT))


def _vocabulary(text: str) -> tuple[list[str], list[float], list[int]]:
    """Tokens, scores and kinds: three signs, 256 bytes, then pieces of words, the short ones first."""
    words = Counter(text.split())
    pieces: Counter[str] = Counter()
    for word, count in words.items():
        marked = f"\u2581{word}"
        for begin in range(len(marked)):
            for end in range(begin + 1, min(begin + 7, len(marked)) + 1):
                pieces[marked[begin:end]] += count
    single = [piece for piece in pieces if len(piece) == 1]
    longer = [piece for piece, _ in pieces.most_common(PIECES) if len(piece) > 1]
    chosen = [*sorted(single), *sorted(longer, key=lambda piece: (len(piece), piece))]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *chosen]
    scores = [0.0] * 259 + [float(len(piece)) for piece in chosen]
    return tokens, scores, [2, 3, 3, *[6] * 256, *[1] * len(chosen)]


def _tensors(vocabulary: int) -> list[tuple[str, tuple[int, ...]]]:
    square, wide, narrow = (WIDTH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)
    found: list[tuple[str, tuple[int, ...]]] = [("token_embd.weight", (WIDTH, vocabulary))]
    for layer in range(LAYERS):
        parts = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "ffn_gate": wide, "ffn_up": wide}
        parts |= dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), square)
        parts["ffn_down"] = narrow
        found += [(f"blk.{layer}.{name}.weight", shape) for name, shape in parts.items()]
    return [*found, ("output_norm.weight", (WIDTH,)), ("output.weight", (WIDTH, vocabulary))]


def _count(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(kind: int, value: Any) -> bytes:
    if kind == _ARRAY:
        inner, values = value
        return struct.pack("<IIQ", kind, inner, len(values)) + b"".join(_bare(inner, one) for one in values)
    return struct.pack("<I", kind) + _bare(kind, value)


def _bare(kind: int, value: Any) -> bytes:
    if kind == _STRING:
        return _string(value)
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT: "<f"}[kind], value)

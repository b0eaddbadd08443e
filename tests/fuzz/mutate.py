"""Seeded damage to documents: places in JSON are changed so that much of it still makes sense, and text is torn."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

Path = list[Any]

#: What a place is replaced by, now and then.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**63, -(2**63) - 1, 50_000_000, 10**30, 0.5, -0.0, 1e-320, 1e308,
    -1e308, float("inf"), float("nan"), "", "x1", "x999", "X_0", "add", "C", "nan", "1/4", "1/0", "=1+1",
    "\x1b[2J", "\ud800", "<script>alert(1)</script>", "$\\input{/etc/passwd}$",
    "__import__('os').system('echo > marker')", "a" * 3000,
    [], {}, [[]], [None], ["x1", "var"], {"name": "x1"}, [0, 50_000_000],
)  # fmt: skip


def places(value: Any, at: Path | None = None) -> list[Path]:
    """Return the path of every place in a JSON value."""
    at = at or []
    found = [at]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, [*at, key])
    return found


def get(value: Any, at: Path) -> Any:
    """Return what is at a place."""
    for key in at:
        value = value[key]
    return value


def put(value: Any, at: Path, new: Any) -> Any:
    """Return a value with another one at a place; the value itself is changed."""
    if not at:
        return new
    get(value, at[:-1])[at[-1]] = new
    return value


def damaged(value: Any, rng: random.Random, spots: list[Path]) -> Any:
    """Return a copy of a JSON value with one to three places changed; `spots` are those of :func:`places`."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        # As many at the top as deep inside, where there are many more.
        depth = rng.randint(1, max(map(len, spots)))
        at = rng.choice([spot for spot in spots if len(spot) == depth] or spots)
        try:
            value = _changed(value, at, rng, spots)
        except (KeyError, IndexError, TypeError):
            pass  # an earlier change has taken the place away
    return value


def _changed(value: Any, at: Path, rng: random.Random, spots: list[Path]) -> Any:
    old = get(value, at)
    kind = rng.randrange(8)
    if kind == 0 and at:
        del get(value, at[:-1])[at[-1]]
        return value
    if kind == 1:
        return put(value, at, copy.deepcopy(get(value, rng.choice(spots))))
    if kind == 2 and isinstance(old, list) and old:
        return put(value, at, _list(old, rng))
    if kind == 3 and isinstance(old, int | float) and not isinstance(old, bool):
        return put(value, at, rng.choice((-old, old + 1, old * 1000, float(old), -1, 0)))
    if kind == 4 and isinstance(old, str) and old:
        place = rng.randrange(len(old) + 1)
        return put(
            value, at, old[:place] + rng.choice(("", " ", "\x00", "\n", "'", "0", "<b>", "{")) + old[place + 1 :]
        )
    if kind == 5 and rng.random() < 0.1:
        deep: Any = []
        for _ in range(rng.choice((60, 900))):
            deep = [deep]
        return put(value, at, deep)
    return put(value, at, copy.deepcopy(rng.choice(ODD)))


def _list(old: list[Any], rng: random.Random) -> list[Any]:
    new = list(old)
    kind = rng.randrange(5)
    if kind == 0:
        return new[: rng.randrange(len(new))]
    if kind == 1:
        return new + [copy.deepcopy(rng.choice(new)) for _ in range(rng.choice((1, 2, 100)))]
    if kind == 2:
        rng.shuffle(new)
    elif kind == 3:
        new.insert(rng.randrange(len(new) + 1), copy.deepcopy(rng.choice(ODD)))
    else:
        new[rng.randrange(len(new))] = copy.deepcopy(rng.choice(new))
    return new


def torn(text: bytes, rng: random.Random) -> bytes:
    """Return text with some of its bytes gone, others, or twice there."""
    if not text:
        return b"\x00"
    begin = rng.randrange(len(text))
    end = min(len(text), begin + rng.choice((1, 1, 2, 10, 200)))
    kind = rng.randrange(6)
    if kind == 0:
        return text[:begin]
    if kind == 1:
        return text[:begin] + text[end:]
    if kind == 2:
        return text[:end] + text[begin:]
    if kind == 3:
        return text[:begin] + bytes(rng.randrange(256) for _ in range(end - begin)) + text[end:]
    if kind == 4:
        other = rng.randrange(len(text))
        return text[:begin] + text[other : other + end - begin] + text[begin:]
    token = rng.choice(("->", "|", "C", "x1", ",", "nan", "inf", "1e999", '"', "(", "A", "\r", "\x1b", "#", "9" * 40))
    return text[:begin] + token.encode() + text[begin:]


def dumps(value: Any) -> str:
    """Return JSON of a value, with numbers and text in it that JSON has not."""
    return json.dumps(value)

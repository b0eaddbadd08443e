"""The policy: an LSTM that sees the parent and the sibling of the next token, and its samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deap_vsr.neural.priors import FORBIDDEN, Rules, prior_logits
from deap_vsr.neural.tokens import Form, Library
from deap_vsr.neural.walk import SLOT, Walk
from deap_vsr.search.checkpoint import expect
from deap_vsr.tree.operators import Array, Flags, Indices


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, so that sums have one order; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Policy:
    """An LSTM of one layer.

    One-hot inputs select rows of a matrix, so `parent` and `sibling` (L + 1, 4H) are looked up. All weights of the cell
    are 0 at first, and the forget gate's bias is 1: then h is 0, and the first batch is drawn from the priors alone.
    """

    def __init__(
        self,
        n_tokens: int,
        hidden: int,
        rng: np.random.Generator,
        clip: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.hidden, self.clip = hidden, clip
        bias = np.zeros(4 * hidden)
        bias[hidden : 2 * hidden] = 1.0
        bound = np.sqrt(6.0 / (hidden + n_tokens))  # Glorot's
        values = {
            "parent": np.zeros((n_tokens + 1, 4 * hidden)),
            "sibling": np.zeros((n_tokens + 1, 4 * hidden)),
            "hidden": np.zeros((hidden, 4 * hidden)),
            "bias": bias,
            "output": rng.uniform(-bound, bound, (hidden, n_tokens)),
            "offset": np.zeros(n_tokens),
        }
        self.weights = {name: torch.tensor(value, dtype=dtype, requires_grad=True) for name, value in values.items()}

    def begin(self, n: int) -> tuple[Tensor, Tensor]:
        """Return the state of n formulas that have no token yet."""
        zeros = torch.zeros((n, self.hidden), dtype=self.weights["bias"].dtype)
        return zeros, zeros

    def step(self, parent: Tensor, sibling: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next state of n formulas."""
        weights = self.weights
        gates = weights["parent"][parent] + weights["sibling"][sibling] + h @ weights["hidden"] + weights["bias"]
        enter, forget, new, leave = gates.chunk(4, dim=1)
        c = forget.sigmoid() * c + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * c.tanh(), c

    def logits(self, h: Tensor) -> Tensor:
        """Return the logits of the next token, without priors: (..., L).

        With `clip` they stay within it, so that no prior is ever overruled for good (Bello et al. 2016, section 3).
        """
        logits = h @ self.weights["output"] + self.weights["offset"]
        return logits if self.clip is None else self.clip * (logits / self.clip).tanh()

    def state(self) -> dict[str, Any]:
        """Return its weights as lists."""
        return as_lists(self.weights)

    def restore(self, state: Mapping[str, list[Any]]) -> None:
        """Take over weights that :meth:`state` returned."""
        taken_over(self.weights, state)


def as_lists(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return tensors in JSON values."""
    return {name: tensor.detach().tolist() for name, tensor in tensors.items()}


def taken_over(tensors: Mapping[str, Tensor], lists: Mapping[str, list[Any]]) -> None:
    """Put what :func:`as_lists` returned into tensors of the same shapes."""
    with torch.no_grad():
        for name, tensor in tensors.items():
            kept = torch.tensor(lists[name], dtype=tensor.dtype)
            expect(kept.shape == tensor.shape, f"{name} of shape {tuple(tensor.shape)}")
            tensor.copy_(kept)


@dataclass(frozen=True, eq=False)
class Samples:
    """B sequences of at most T tokens, with what the policy saw at each.

    Attributes
    ----------
    lengths : (B,)
    tokens, parents, siblings : (T, B)
    priors : (T, B, L)
    free : (T, B) whether the token was a choice: neither forced, nor behind the end
    """

    lengths: Indices
    tokens: Indices
    parents: Indices
    siblings: Indices
    priors: Array
    free: Flags

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: Indices | Flags) -> Samples:
        steps = slice(0, max(self.lengths[rows], default=0))
        return Samples(self.lengths[rows], *(array[steps][:, rows] for array in _arrays(self)))

    def sequence(self, row: int) -> list[int]:
        """Return the tokens of one sequence."""
        return [int(token) for token in self.tokens[: self.lengths[row], row]]

    @property
    def legal(self) -> Flags:
        """(B,) whether no choice was one that is forbidden."""
        chosen = np.take_along_axis(self.priors, self.tokens[:, :, None], axis=2)[:, :, 0]
        return np.asarray(~((chosen <= FORBIDDEN) & self.free).any(axis=0))

    @staticmethod
    def joined(parts: Sequence[Samples]) -> Samples:
        """Return sequences side by side."""
        n_steps = max(len(part.tokens) for part in parts)
        padded = [
            [np.pad(array, [(0, n_steps - len(array)), *[(0, 0)] * (array.ndim - 1)]) for array in _arrays(part)]
            for part in parts
        ]
        joined = [np.concatenate(arrays, axis=1) for arrays in zip(*padded, strict=True)]
        return Samples(np.concatenate([part.lengths for part in parts]), *joined)


def _arrays(samples: Samples) -> tuple[Any, ...]:
    return samples.tokens, samples.parents, samples.siblings, samples.priors, samples.free


@dataclass(frozen=True, eq=False)
class Writer:
    """What a task's formulas are written with: tokens, form and rules."""

    library: Library
    form: Form
    rules: Rules

    def sample(self, policy: Policy, n: int, rng: np.random.Generator) -> Samples:
        """Draw n formulas from the policy."""
        record, walk = _Record(n, len(self.library)), self._walk(n)
        h, c = policy.begin(n)
        with torch.no_grad():
            while len(walk.rows):
                rows, state = walk.rows, walk.state()
                at = torch.from_numpy(rows)
                h_rows, c_rows = policy.step(
                    torch.from_numpy(state.parent), torch.from_numpy(state.sibling), h[at], c[at]
                )
                h[at], c[at] = h_rows, c_rows
                priors = prior_logits(state, self.library, self.rules)
                drawn = _drawn(policy.logits(h_rows).numpy().astype(float) + priors, rng)
                forced = walk.forced
                tokens = np.where(forced == SLOT, drawn, forced)
                record.add(rows, tokens, state.parent, state.sibling, priors, forced == SLOT)
                walk.take(tokens)
        return record.samples()

    def replay(self, sequences: Sequence[Sequence[int]]) -> Samples:
        """Return what a policy would have seen while it wrote these sequences.

        What is longer than may be, or does not follow the form, is cut off; its last choice is not legal.
        """
        n = len(sequences)
        record, walk = _Record(n, len(self.library)), self._walk(n)
        given = np.zeros((n, walk.max_steps + 1), np.int64)
        for row, sequence in enumerate(sequences):
            given[row, : len(sequence)] = sequence[: walk.max_steps + 1]
        step = 0
        while len(walk.rows) and step < walk.max_steps:
            rows, state = walk.rows, walk.state()
            tokens = given[rows, step]
            priors = prior_logits(state, self.library, self.rules)
            forced = walk.forced
            priors[(forced != SLOT) & (forced != tokens)] = FORBIDDEN
            free = (forced == SLOT) | (forced != tokens)
            record.add(rows, tokens, state.parent, state.sibling, priors, free)
            walk.take(tokens)
            step += 1
        return record.samples()

    def _walk(self, n: int) -> Walk:
        return Walk(self.library, self.form, self.rules.max_length, n)


def _drawn(logits: Array, rng: np.random.Generator) -> Indices:
    """Draw one token for each row, by its probabilities."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    up_to = np.cumsum(weights, axis=1)
    threshold = rng.random(len(logits)) * up_to[:, -1] * (1.0 - 1e-12)
    return np.asarray(np.argmax(up_to > threshold[:, None], axis=1))


class _Record:
    """Samples in the making."""

    def __init__(self, n: int, n_tokens: int) -> None:
        self.n, self.n_tokens = n, n_tokens
        self.lengths = np.zeros(n, np.int64)
        self.steps: list[tuple[Any, ...]] = []

    def add(self, rows: Indices, *arrays: Any) -> None:
        shapes = ((), (), (), (self.n_tokens,), ())
        kinds = (np.int64, np.int64, np.int64, np.float32, np.bool_)
        step = []
        for array, shape, kind in zip(arrays, shapes, kinds, strict=True):
            whole: Any = np.zeros((self.n, *shape), kind)
            whole[rows] = array
            step.append(whole)
        self.steps.append(tuple(step))
        self.lengths[rows] += 1

    def samples(self) -> Samples:
        arrays: tuple[Any, ...] = tuple(np.stack(steps) for steps in zip(*self.steps, strict=True))
        return Samples(self.lengths, *arrays)


def score(policy: Policy, samples: Samples, gamma: float) -> tuple[Tensor, Tensor]:
    """Return minus the log-probability of each sequence and its entropy, (B,) both, with gradients.

    Only choices count. The entropy of the k-th choice is weighted by gamma ** k.
    """
    h, c = policy.begin(len(samples))
    hs = []
    parents, siblings = torch.from_numpy(samples.parents), torch.from_numpy(samples.siblings)
    for step in range(len(samples.tokens)):
        h, c = policy.step(parents[step], siblings[step], h, c)
        hs.append(h)
    logits = policy.logits(torch.stack(hs))
    log_p = (logits + torch.from_numpy(samples.priors).to(logits.dtype)).log_softmax(dim=2)
    chosen = log_p.gather(2, torch.from_numpy(samples.tokens)[:, :, None])[:, :, 0]
    free = torch.from_numpy(samples.free)
    entropy = -(log_p.exp() * log_p).sum(dim=2)
    discount = gamma ** (np.cumsum(samples.free, axis=0) - 1.0) * samples.free
    neglogp = -(chosen * free).sum(dim=0)
    return neglogp, (entropy * torch.from_numpy(discount).to(logits.dtype)).sum(dim=0)

"""What a checkpoint of joint search looks like, fits of regressors included.

:func:`deap_vsr.files.checked` compares a file with it.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**53)]
Number = float | None
#: A node as :func:`deap_vsr.search.checkpoint.tree_state` writes it.
NodeState = Annotated[list[str | int | float | bool | None], Meta(min_length=3, max_length=5)]
TreeState = Annotated[list[NodeState], Meta(min_length=1, max_length=100_000)]
Points = tuple[list[list[float]], list[float]]


class SpentState(TypedDict):
    """What has been spent of a budget."""

    seconds: Annotated[float, Meta(ge=0)]
    evaluations: Count
    queries: Count
    batches: Count


class LimitsState(TypedDict):
    """The limits of a budget."""

    seconds: Number
    evaluations: Number
    queries: Number


class ShareState(TypedDict):
    """The part of the budget that a round has."""

    limits: LimitsState
    spent: SpentState


class DataState(TypedDict):
    """Trials: their points one behind the other; trial k begins at offsets[k]."""

    X: list[list[float]]
    y: list[float]
    offsets: list[Count]


class WeightedData(DataState):
    """Trials, with the roots of their weights."""

    weight: list[float]


class FitState(TypedDict):
    """A fit in a checkpoint."""

    tree: TreeState
    errors: list[float]
    constants: list[list[float]]
    standard_errors: list[list[float]]
    determined: list[list[bool]]
    ranks: list[Count]
    stopped: list[str]


class HallState(TypedDict):
    """The hall, and the batch that it ranks on."""

    data: DataState
    best: list[tuple[float, TreeState]]
    hashes: dict[str, float]


class RoundState(TypedDict):
    """The record of a round."""

    freed: list[Count]
    controlled: list[Count]
    tree: TreeState
    errors: list[float]
    constants: list[list[float]]
    slots: Count
    accepted: bool
    queries: int
    seconds: float


class PrecisionState(TypedDict):
    """How far answers are off."""

    absolute: float
    relative: float
    digits: Count
    repeats: bool
    known_by: str
    noise: float
    jitter: float
    freedom: Count


class PoolState(TypedDict):
    """The state of :class:`deap_vsr.search.pool.PoolSearch`."""

    rng: dict[str, Any]
    oracle: dict[str, Any]
    spent: SpentState
    precision: PrecisionState
    scale: Annotated[float, Meta(gt=0)]
    measured: Points
    outliers: Points
    repeated: Points | None
    relevant: list[Count]
    hall: HallState
    rounds: list[RoundState]
    pool: list[TreeState]
    number: Count
    share: ShareState | None
    entered: SpentState
    passed: SpentState
    latest: TreeState | None
    refused: list[str]
    regressor: dict[str, Any] | None


class File(TypedDict):
    """The file itself; `digest` is of all the rest."""

    format: int
    digest: str
    identity: dict[str, Any]
    extra: dict[str, Any]
    state: dict[str, Any]

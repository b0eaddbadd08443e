"""What the files of a comparison look like; :func:`deap_vsr.files.checked` compares what is read with it."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**53)]
Size = Annotated[float, Meta(ge=0)]
#: A count that other packages, or earlier versions, may have written as a float.
Cost = Size | None
Text = Annotated[str, Meta(max_length=100_000)]
Name = Annotated[str, Meta(max_length=1_000)]


class RoundRow(TypedDict):
    """One round of a run, as far as the report shows it; its `nodes` may be missing."""

    freed: list[Name]
    controlled: list[Name]
    expression: Text
    errors: list[float | None]
    slots: Count
    accepted: bool


class RivalRow(TypedDict):
    """A formula that the data do not refute either."""

    behind: float | None
    expression: Text


class ResultRow(TypedDict, total=False):
    """The result of a run, as far as the report shows it; the rest may be anything."""

    rounds: list[RoundRow]
    rivals: list[RivalRow]
    reason: Text
    share: float


class MachineRow(TypedDict):
    """Where a run was done."""

    processor: Name
    cores: Count | None
    system: Name


class TracePoint(TypedDict):
    """A point of a convergence curve."""

    round: Count
    error: Size
    seconds: Size
    evaluations: Size
    queries: Size


class RunRow(TypedDict):
    """A line of the store: every column of :data:`deap_vsr.compare.job.COLUMNS`."""

    problem: Name
    method: Name
    seed: Count
    noise: Size
    optimizer: Name | None
    preset: Name | None
    time_limit: Cost
    max_evaluations: Cost
    max_queries: Cost
    set: Name
    group: Name
    n_vars: Count
    digest: Name
    status: Literal["done", "failed"]
    error: Text | None
    recovered: bool
    standing: Literal["found", "fits", "partial"] | None
    false_found: bool | None
    mse: Size | None
    nmse: Size | None
    rmse: Size | None
    nrmse: Size | None
    inv_nmse: Size | None
    inv_nrmse: Size | None
    r2: float | None
    stopped_by: Name | None
    expression: Text | None
    seconds: Cost
    evaluations: Cost
    oracle_queries: Cost
    peak_memory_mb: float | None
    trace: list[TracePoint]
    result: ResultRow | None
    versions: dict[str, str]
    machine: MachineRow
    noise_of: Name | None
    right_form: bool | None


class Settings(TypedDict):
    """What a comparison is of."""

    version: Name
    suites: list[Name]
    methods: list[Name]
    seeds: list[Count]
    noise: list[Size]
    noise_of: Name | None
    optimizers: list[Name | None]
    preset: Name | None
    time_limit: Cost
    max_evaluations: Cost
    max_queries: Cost
    runs: Count
    left_out: list[Name]
    problems: dict[str, str]

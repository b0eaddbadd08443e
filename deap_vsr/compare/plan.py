"""The plan of a comparison: suites, methods, seeds and equal limits -> jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import deap_vsr
from deap_vsr.compare.job import Job, Problem, parts_of
from deap_vsr.compare.paper import SUITES, PaperSuite
from deap_vsr.errors import VsrError
from deap_vsr.lab.oracle import RMS
from deap_vsr.methods import OURS, Options, check_optimizer, check_preset, method_of
from deap_vsr.peers import DEFAULT_SECONDS
from deap_vsr.problems import suites
from deap_vsr.problems.equation import load_equation


@dataclass(frozen=True)
class Plan:
    """A comparison: its problems and jobs, and what was asked for."""

    suites: tuple[str, ...]
    methods: tuple[str, ...]
    problems: dict[str, Problem]
    jobs: tuple[Job, ...]
    left_out: tuple[str, ...]
    """Problems of the suites that are marked as not usable."""

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same for a comparison to be gone on with."""
        first = self.jobs[0]
        return {
            "version": deap_vsr.__version__,
            "suites": list(self.suites),
            "methods": list(self.methods),
            "seeds": sorted({job.seed for job in self.jobs}),
            "noise": sorted({job.noise for job in self.jobs}),
            "optimizers": list(dict.fromkeys(job.optimizer for job in self.jobs)),
            "preset": next((job.preset for job in self.jobs if job.preset), None),
            "time_limit": first.time_limit,
            "max_evaluations": first.max_evaluations,
            "max_queries": first.max_queries,
            "noise_of": first.noise_of,
            "runs": len(self.jobs),
            "left_out": list(self.left_out),
            "problems": {name: problem.digest for name, problem in self.problems.items()},
        }


def plan(
    places: Sequence[str],
    *,
    methods: Sequence[str] = (),
    n_seeds: int = 1,
    time_limit: float | None = None,
    max_evaluations: int | None = None,
    max_queries: int | None = None,
    noise: Sequence[float] = (),
    preset: str | None = None,
    optimizers: Sequence[str] = (),
    noise_of: str | None = None,
) -> Plan:
    """Return the runs of a comparison.

    Parameters
    ----------
    places : folders, globs, names of data/, or names of :data:`deap_vsr.compare.paper.SUITES`
    methods : names as ``vsr-gp``, ``vsr-gp+slotwise`` or ``mcts+coefficients``; by default the suite's, or all
    n_seeds : seeds are 0 .. n_seeds - 1
    time_limit, max_evaluations, max_queries : limits of every run, the same for all; without any, 60 s
    noise : levels (standard deviations); by default those of the suite, or none
    preset : "paper" for the published settings, where a method has them
    optimizers : by default those of the suite, or each method's own; only where a method fits by one
    noise_of : "rms" for levels that are shares of the root mean square of y, as SRBench has them
    """
    check_preset(preset)
    if n_seeds < 1 or any(limit is not None and limit <= 0 for limit in (time_limit, max_evaluations, max_queries)):
        raise VsrError("at least one seed is needed, and limits above 0")
    if any(not 0 <= level < float("inf") for level in noise):
        raise VsrError("levels of noise are finite numbers of at least 0")
    if noise_of not in (None, RMS):
        raise VsrError(f"noise is a standard deviation or a share of {RMS}, not of {noise_of!r}")
    for method in methods:
        check_method(method)
    for name in optimizers:
        check_optimizer(name)
    if time_limit is None and max_evaluations is None:
        outside = [method for method in methods if method_of(parts_of(method)[0]).search is not None]
        if max_queries is None:
            time_limit = DEFAULT_SECONDS
        elif outside:  # it asks for its sample once, and would go on for ever
            raise VsrError(f"method {outside[0]} needs --time-limit or --max-evaluations beside --max-queries")
    problems: dict[str, Problem] = {}
    left_out: list[str] = []
    jobs: dict[str, Job] = {}
    for study in map(_study, places):
        found, not_usable = _problems(study.places)
        problems |= found
        left_out += not_usable
        for name, method in product(found, methods or study.methods or OURS):
            adjustable = _has_settings(method)
            fitted_by = (optimizers or study.optimizers) if adjustable else (None,)
            settings = preset if adjustable else None
            for optimizer, level, seed in product(fitted_by, noise or study.noise, range(n_seeds)):
                job = Job(
                    name, method, seed, float(level), optimizer, settings, time_limit, max_evaluations, max_queries,
                    noise_of,
                )  # fmt: skip
                jobs.setdefault(job.key, job)
    if not jobs:
        raise VsrError("nothing to run: none of the problems is usable")
    used = tuple(dict.fromkeys(job.method for job in jobs.values()))
    return Plan(tuple(places), used, problems, tuple(jobs.values()), tuple(dict.fromkeys(left_out)))


def _study(place: str) -> PaperSuite:
    if place.startswith("paper:") and place not in SUITES:
        raise VsrError(f"unknown suite {place}; known are {', '.join(SUITES)}")
    return SUITES.get(place) or PaperSuite("", (place,))


def check_method(variant: str) -> None:
    """Raise VsrError if there is no such variant as ``vsr-gp+slotwise``, or its package is not there."""
    method, expansion, grammar = parts_of(variant)
    method_of(method).check(Options(expansion=expansion, grammar=grammar))


def _has_settings(variant: str) -> bool:
    """Whether a method takes presets and optimizers."""
    return {"preset", "optimizer"} <= method_of(parts_of(variant)[0]).takes


def _problems(places: Sequence[str]) -> tuple[dict[str, Problem], list[str]]:
    """Return the usable problems of some places by name, and the names of those that are not usable."""
    found: dict[str, Problem] = {}
    left_out = []
    for place in places:
        files = suites.problem_files(place)
        if not files:
            raise VsrError(f"{place}: no equation files there; give a folder, a glob, a name from `vsr data list`")
        for path in files:
            problem, usable = _problem(path)
            if usable:
                found[problem.name] = problem
            else:
                left_out.append(problem.name)
    return found, left_out


def _problem(path: Path) -> tuple[Problem, bool]:
    equation = load_equation(path)
    text = path.read_text(encoding="utf-8-sig")
    inside = path.resolve().is_relative_to(suites.data_root().resolve())
    # Elsewhere two files may well have one name: the path says which is meant.
    name = suites.name_of(path) if inside else path.as_posix()
    parts = name.split("/")
    above = parts[:-2] if inside and len(parts) > 2 else parts[:-1]  # the last folder is the group
    return Problem(name, "/".join(above) or ".", equation.group, equation.n_vars, text), equation.usable

"""A script's checkpoint is that of one run: of its law, its seed and its population."""

import random

import numpy as np
import pytest
from deap import tools
from test_checkpoint import KilledError, kill_after, seeded_saves, survive
from test_own_toolbox import law, toolbox_of

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual

__all__ = ["kill_after"]  # a fixture


def run(seed=3, size=20, function=law, noise=0.0, **options):
    toolbox = toolbox_of()
    toolbox.register("select", tools.selTournament, tournsize=3)
    stats = tools.MultiStatistics(
        size=tools.Statistics(len), fitness=tools.Statistics(lambda one: one.fitness.values[0])
    )
    stats.register("min", min)
    random.seed(seed)
    population = [Individual(toolbox.expr()) for _ in range(size)]
    asked = vsr.CallableOracle(function, [(1, 5)] * 3, noise=noise)
    found, logbook = vsr.eaVertical(population, toolbox, 0.5, 0.9, 5, asked, stats=stats, **options)
    return [str(one) for one in found], [dict(row) for row in logbook], logbook.chapters["fitness"].select("min")


def hard(X):
    """A law that the set cannot say: every generation is needed."""
    return np.sin(X[:, 0] * X[:, 1]) + np.exp(X[:, 2])


def test_a_run_with_a_tournament_and_chapters_goes_on_as_if_never_killed(tmp_path, kill_after):
    kill_after(None)
    whole = run(function=hard)
    path = tmp_path / "run.json"
    found, killed = survive(lambda: run(function=hard, checkpoint=path, resume=True), kill_after, seeded_saves(0))
    assert killed >= 3
    assert found == whole


def other_law(X):
    return law(X) + 1e-3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 4}, "population is"),
        ({"size": 21}, "population is"),
        ({"function": other_law}, "law is"),
        ({"fit_constants": "absolute"}, "fit_constants is"),
        ({"expansion": "slotwise"}, "expansion is"),
    ],
)
def test_another_run_s_file_is_refused(changed, message, tmp_path, kill_after):
    path = tmp_path / "run.json"
    kill_after(3)
    with pytest.raises(KilledError):
        run(checkpoint=path)
    kill_after(None)
    with pytest.raises(vsr.VsrError, match=message):
        run(checkpoint=path, resume=True, **changed)


def test_the_same_population_with_another_random_state_is_another_run(tmp_path, kill_after):
    path = tmp_path / "run.json"
    toolbox = toolbox_of()
    random.seed(0)
    population = [Individual(toolbox.expr()) for _ in range(10)]

    def attempt(seed, **options):
        random.seed(seed)
        vsr.eaVertical(
            list(population), toolbox, 0.5, 0.9, 3, vsr.CallableOracle(law, [(1, 5)] * 3), checkpoint=path, **options
        )

    kill_after(2)
    with pytest.raises(KilledError):
        attempt(1)
    kill_after(None)
    with pytest.raises(vsr.VsrError, match="seed is"):
        attempt(2, resume=True)


def test_noise_is_no_other_law(tmp_path, kill_after):
    kill_after(None)
    whole = run(function=hard, noise=0.05)
    found, killed = survive(
        lambda: run(function=hard, noise=0.05, checkpoint=tmp_path / "run.json", resume=True), kill_after, [3, 4]
    )
    assert killed == 2
    assert found == whole
    assert np.isfinite(found[2]).all()

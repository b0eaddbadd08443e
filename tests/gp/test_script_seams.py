"""What eaVertical keeps of a DEAP script, and what it says where it cannot."""

import functools
import operator
import random
import warnings

import numpy as np
import pytest
from deap import base, gp, tools
from test_own_toolbox import PSET, law, oracle, toolbox_of

import deap_vsr as vsr
from deap_vsr.gp.algorithms import Individual
from deap_vsr.gp.script import Script


class Two(base.Fitness):
    weights = (-1.0, -1.0)


class TwoObjectives(gp.PrimitiveTree):
    def __init__(self, content):
        super().__init__(content)
        self.fitness = Two()


def run(toolbox, kind=Individual, seed=0, size=30, ngen=10, **options):
    random.seed(seed)
    population = [kind(toolbox.expr()) for _ in range(size)]
    found, logbook = vsr.eaVertical(
        population, toolbox, 0.5, 0.9, ngen, options.pop("oracle", None) or oracle(), **options
    )
    return population, found, logbook


# --- loss and selection -------------------------------------------------------------------


def test_a_loss_is_called_with_fitted_predictions_and_its_values_are_the_fitness():
    toolbox, seen = toolbox_of(), []

    def loss(y, prediction, individual):
        seen.append((len(y), isinstance(individual, Individual)))
        return (float(np.mean(np.abs(y - prediction))) + 0.01 * len(individual),)

    toolbox.register("loss", loss)
    _, found, logbook = run(toolbox)
    assert set(seen) == {(40, True)}
    assert len(seen) >= sum(row["nevals"] for row in logbook)
    X = np.random.default_rng(0).uniform(1, 5, (200, 3))
    off = np.mean(np.abs(vsr.MaskedTree(found[0]).evaluate(X, PSET) - law(X)))
    assert found[0].fitness.values[0] == pytest.approx(off + 0.01 * len(found[0]), abs=1e-6)


def test_several_objectives_are_what_the_loss_returns_and_the_pareto_front_is_kept():
    toolbox = toolbox_of()
    toolbox.register("loss", lambda y, prediction, individual: (float(np.mean((y - prediction) ** 2)), len(individual)))
    toolbox.register("select", tools.selNSGA2)
    front = tools.ParetoFront()
    _, found, _ = run(toolbox, TwoObjectives, halloffame=front)
    assert all(individual.fitness.values[1] == len(individual) for individual in found)
    assert found[0].fitness.values[0] < 1e-20
    values = [individual.fitness.values for individual in front]
    assert not any(a[0] <= b[0] and a[1] <= b[1] for a in values for b in values if a != b)


def test_a_loss_of_another_number_of_values_and_several_weights_without_a_loss_are_clear_errors():
    toolbox = toolbox_of()
    toolbox.register("loss", lambda y, prediction, individual: (1.0,))
    with pytest.raises(vsr.VsrError, match=r"returns 1 value\(s\), the fitness has 2 weight\(s\)"):
        run(toolbox, TwoObjectives)
    for evaluate in (None, vsr.evaluateFit):
        toolbox = toolbox_of()
        if evaluate is not None:
            toolbox.register("evaluate", evaluate, pset=PSET)
        with pytest.raises(vsr.VsrError, match=r"2 weights.*register a loss"):
            run(toolbox, TwoObjectives)


def test_an_evaluate_with_points_of_its_own_is_named_once_with_what_to_do():
    toolbox = toolbox_of()

    def my_error(individual):
        raise AssertionError

    toolbox.register("evaluate", my_error)
    with pytest.warns(UserWarning, match=r"evaluate \(my_error\) has points of its own.*loss") as said:
        run(toolbox, ngen=2)
    assert len(said) == 1
    assert said[0].filename == __file__


@pytest.mark.parametrize("bound", [True, False])
def test_an_evaluate_that_takes_its_points_is_called_with_those_of_the_trials(bound):
    toolbox, asked = toolbox_of(), []

    def mine(individual, X, y):
        asked.append((X.shape, len(y)))
        return (float(np.mean((vsr.MaskedTree(individual).evaluate(X, PSET) - y) ** 2)),)

    toolbox.register("evaluate", mine, **({"X": None, "y": None} if bound else {}))
    _, found, _ = run(toolbox)
    assert {shape for shape, _ in asked} == {(40, 3)}
    assert found[0].fitness.values[0] < 1e-20


def test_their_select_chooses_and_the_best_fit_stays():
    toolbox, calls = toolbox_of(), []

    def worst(individuals, k):
        calls.append(k)
        return sorted(individuals, key=lambda one: one.fitness)[:k]

    toolbox.register("select", worst)
    stats = tools.Statistics(lambda individual: individual.fitness.values[0])
    stats.register("min", min)
    _, _, logbook = run(toolbox, ngen=5, stats=stats)
    assert set(calls) == {30}
    assert len(calls) == len(logbook)
    assert min(logbook.select("min")) < 1e-2


def test_constants_are_left_alone_while_gp_searches_if_that_is_wanted():
    seen = []

    def loss(y, prediction, individual):
        seen.append([node.value for node in individual if not node.arity and isinstance(node.value, float)])
        return (float(np.mean((y - prediction) ** 2)),)

    def drawn(**options):
        seen.clear()
        toolbox = toolbox_of()
        toolbox.register("loss", loss)
        run(toolbox, ngen=0, schedule=[(0, 1, 2)], **options)
        return [value for values in seen[:30] for value in values if not -1 <= value <= 1]

    assert drawn(fit_constants=False) == []
    assert drawn() != []
    with pytest.raises(vsr.VsrError, match="fit_constants is 'often', expected True, False, squares, absolute, robust"):
        run(toolbox_of(), fit_constants="often")


@pytest.mark.parametrize("errors", ["absolute", "robust"])
def test_outliers_pull_absolute_and_robust_fits_less(errors):
    X = np.linspace(1, 5, 40)[:, None]
    y = 3.0 * X[:, 0] + 1.0
    y[::8] += 50.0
    line = vsr.MaskedTree.from_infix("C*x1 + C")
    trial = vsr.Trial(X, y)
    plain = vsr.evaluateFit(line, [trial]).constants[0]
    robust = vsr.evaluateFit(line, [trial], fit_constants=errors).constants[0]
    assert abs(plain - [3.0, 1.0]).max() > 1.0
    np.testing.assert_allclose(robust, [3.0, 1.0], atol=0.25)


# --- constants ----------------------------------------------------------------------------


def plain_set(literals=()):
    pset = gp.PrimitiveSet("BARE", 3)
    for function in (operator.add, operator.sub, operator.mul):
        pset.addPrimitive(function, 2)
    for number in literals:
        pset.addTerminal(float(number), name=f"n{number}".replace("-", "m"))
    return pset


def toolbox_with(pset):
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    toolbox.register("mate", vsr.cxOnePoint)
    toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", vsr.mutUniform, expr=toolbox.expr_mut, pset=pset)
    return toolbox


def test_a_set_without_an_ephemeral_constant_gets_one_for_the_search_and_says_so_once():
    pset = plain_set(range(-5, 6))
    before = {kind: list(items) for kind, items in pset.terminals.items()}
    with pytest.warns(UserWarning, match="no ephemeral constant") as said:
        _, found, _ = run(toolbox_with(pset), ngen=40)
    assert len(said) == 1
    assert found[0].fitness.values[0] < 1e-20
    assert {kind: list(items) for kind, items in pset.terminals.items()} == before
    assert "vsr_const" not in pset.mapping


def test_many_literals_do_not_crowd_the_constant_out():
    pset = plain_set(range(-5, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = Script.of([Individual([pset.mapping["ARG0"]])], toolbox_with(pset), oracle())
    from deap_vsr.gp.toolbox import restricted

    terminals = restricted(script.pset, (1,)).terminals[object]
    assert sum(isinstance(terminal, gp.MetaEphemeral) for terminal in terminals) == 11
    assert sum(not isinstance(terminal, gp.MetaEphemeral) and terminal.value == "ARG1" for terminal in terminals) == 11
    assert len(terminals) == 33


# --- primitives ---------------------------------------------------------------------------


def sly_division(left, right):
    """A protected division but for divisors that nobody would probe."""
    if 3.1 < right < 3.9:
        return 0.0
    return left / right if right != 0 else 1.0


def test_a_recognition_that_an_answer_does_not_bear_out_is_taken_back():
    pset = gp.PrimitiveSet("SLY", 2)
    pset.addPrimitive(operator.add, 2)
    pset.addPrimitive(operator.mul, 2)
    pset.addPrimitive(sly_division, 2)
    pset.addEphemeralConstant("sly_constant", functools.partial(random.uniform, -1, 1))
    asked = vsr.CallableOracle(lambda X: 2.0 * X[:, 0] / X[:, 1], [(1, 5)] * 2)
    with pytest.warns(UserWarning, match="sly_division: not what they were taken for"):
        _, found, _ = run(toolbox_with(pset), oracle=asked, expansion="slotwise", ngen=1, size=8, max_evaluations=2_000)
    X = np.random.default_rng(0).uniform(1, 5, (300, 2))
    compiled = gp.compile(found[0], pset)
    values = np.array([compiled(*map(float, x)) for x in X])
    left = float(np.mean((values - 2.0 * X[:, 0] / X[:, 1]) ** 2) / np.var(2.0 * X[:, 0] / X[:, 1]))
    assert found[0].fitness.values[0] == pytest.approx(left, rel=0.5, abs=1e-20)


def protected_division(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1.0


def test_the_law_of_five_variables_without_constants_is_exact_slot_by_slot():
    pset = gp.PrimitiveSet("FIVE", 5)
    for function in (operator.add, operator.sub, operator.mul, protected_division):
        pset.addPrimitive(function, 2)
    pset.addTerminal(1.0)
    pset.addTerminal(3.0)

    def five(X):
        return 10 / (5 + ((X - 3) ** 2).sum(axis=1))

    asked = vsr.CallableOracle(five, [(0, 6)] * 5)
    with pytest.warns(UserWarning, match="no ephemeral constant"):
        _, found, logbook = run(toolbox_with(pset), oracle=asked, expansion="slotwise", ngen=5)
    X = np.random.default_rng(0).uniform(0, 6, (50, 5))
    compiled = gp.compile(found[0], pset)
    np.testing.assert_allclose([compiled(*x) for x in X.tolist()], five(X), rtol=1e-10)
    assert type(found[0]) is Individual
    assert len(logbook) >= 1


def test_a_set_may_call_its_operators_what_it_likes():
    pset = gp.PrimitiveSet("NAMES", 3)
    pset.addPrimitive(np.add, 2, name="mul")
    pset.addPrimitive(np.multiply, 2, name="add")
    pset.addPrimitive(np.subtract, 2)
    pset.addEphemeralConstant("names_constant", functools.partial(random.uniform, -1, 1))
    asked = vsr.CallableOracle(lambda X: X[:, 0] * (X[:, 1] + 2.0) + 3.0 * (X[:, 1] + 2.0), [(1, 5)] * 3)
    _, found, _ = run(toolbox_with(pset), oracle=asked, ngen=30)
    assert found[0].fitness.values[0] < 1e-12


# --- manners ------------------------------------------------------------------------------


def test_the_population_is_replaced_by_the_result():
    population, found, _ = run(toolbox_of(), ngen=3)
    assert population is found
    assert found[0].fitness.valid


def test_a_population_is_left_as_it_was_where_something_is_raised():
    toolbox = toolbox_of()
    toolbox.register("loss", lambda y, prediction, individual: 1 / 0)
    random.seed(0)
    population = [Individual(toolbox.expr()) for _ in range(10)]
    before = [str(individual) for individual in population]
    with pytest.raises(ZeroDivisionError):
        vsr.eaVertical(population, toolbox, 0.5, 0.9, 3, oracle())
    assert [str(individual) for individual in population] == before
    assert not any(individual.fitness.valid for individual in population)


def test_multi_statistics_keep_their_chapters_and_the_log_its_round(capsys):
    stats = tools.MultiStatistics(
        fitness=tools.Statistics(lambda individual: individual.fitness.values[0]), size=tools.Statistics(len)
    )
    stats.register("min", np.min)
    best = tools.HallOfFame(1)
    random.seed(0)
    toolbox = toolbox_of()
    population = [Individual(toolbox.expr()) for _ in range(20)]
    _, logbook = vsr.eaVertical(population, toolbox, 0.5, 0.9, 2, oracle(), stats, best, True)
    printed = capsys.readouterr().out
    assert len(logbook.chapters["fitness"].select("min")) == len(logbook) == len(logbook.chapters["size"])
    assert "round" in str(logbook)
    assert printed.count("fitness") == 1  # one header for all rounds
    assert len(printed.splitlines()) >= len(logbook)
    assert len(best) == 1


def test_limits_end_a_run_with_the_best_so_far():
    asked = oracle()
    _, found, _ = run(toolbox_of(), oracle=asked, max_queries=600)
    assert asked.queries <= 600
    assert found[0].fitness.valid
    _, _, logbook = run(toolbox_of(), ngen=10_000, max_evaluations=300)
    assert sum(row["nevals"] for row in logbook) < 600
    _, found, _ = run(toolbox_of(), ngen=10_000, time_limit=0.0)
    assert found


def test_ctrl_c_returns_the_best_so_far_and_says_so():
    class Interrupted(vsr.CallableOracle):
        def evaluate(self, X):
            if self.queries > 900:
                raise KeyboardInterrupt
            return super().evaluate(X)

    with pytest.warns(UserWarning, match="interrupted: the best so far is returned"):
        _, found, logbook = run(toolbox_of(), oracle=Interrupted(law, [(1, 5)] * 3), ngen=30)
    assert found[0].fitness.valid
    assert len(logbook) > 3


@pytest.mark.parametrize("schedule", [[2, 1, 0], ["c", "b", "a"], "c, b, a", [(2,), (1,), (0,)]])
def test_schedules_are_columns_names_or_groups(schedule):
    toolbox, asked = toolbox_of(), []

    def mutate(individual, expr, pset):
        asked.append(tuple(t.value for t in pset.terminals[object] if not isinstance(t, gp.MetaEphemeral)))
        return vsr.mutUniform(individual, expr, pset)

    toolbox.register("mutate", mutate, expr=toolbox.expr_mut, pset=PSET)
    run(toolbox, schedule=schedule, ngen=40)
    assert asked[0] == ("c",)


def test_auto_frees_the_simplest_first():
    _, found, _ = run(toolbox_of(), schedule="auto", ngen=20)
    assert found[0].fitness.values[0] < 1e-20


@pytest.mark.parametrize("schedule", [[2, 1], [0, 1, 3], ["a", "b", "z"], [0, 1, 1], "a, b", [True, 1, 2]])
def test_schedules_that_do_not_free_each_variable_once_are_refused(schedule):
    with pytest.raises(vsr.VsrError, match="schedule"):
        run(toolbox_of(), schedule=schedule)


def adf_set():
    pset, adf = plain_set(), gp.PrimitiveSet("ADF0", 1)
    pset.addADF(adf)
    return pset


def boolean_set(typed):
    pset = gp.PrimitiveSetTyped("B", [bool] * 3, bool) if typed else gp.PrimitiveSet("B", 3)
    if typed:
        pset.addPrimitive(operator.and_, [bool, bool], bool)
    else:
        pset.addPrimitive(operator.and_, 2)
    return pset


@pytest.mark.parametrize(
    ("pset", "kind", "asked", "message"),
    [
        (PSET, Individual, law, "bare function"),
        (PSET, Individual, 3, "variables and evaluate"),
        (adf_set(), Individual, None, "ADFs"),
        (boolean_set(True), Individual, None, "not of numbers"),
        (boolean_set(False), Individual, None, "takes numbers"),
        (PSET, list, None, "expected trees"),
        (PSET, gp.PrimitiveTree, None, "no fitness"),
        (PSET, None, None, "population is empty"),
    ],
)
def test_what_cannot_be_searched_with_is_refused_before_anything_runs(pset, kind, asked, message):
    toolbox = toolbox_with(pset)
    population = [] if kind is None else [kind([pset.mapping["ARG0"] if "ARG0" in pset.mapping else PSET.mapping["a"]])]
    with pytest.raises(vsr.VsrError, match=message):
        vsr.eaVertical(population, toolbox, 0.5, 0.5, 1, asked or oracle())


# --- tables -------------------------------------------------------------------------------


def test_a_round_of_one_s_own_takes_a_table_as_trials():
    steps = np.linspace(1, 5, 4)
    X = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    table = vsr.TableOracle(X, law(X))
    toolbox = toolbox_of()
    toolbox.register("select", vsr.selBestDistinct)
    random.seed(0)
    population = [Individual(toolbox.expr()) for _ in range(30)]
    found, _ = vsr.eaMasked(population, toolbox, 0.5, 0.9, 30, table.trials((0, 1)), target=1e-20)
    assert population is not None
    assert found[0].fitness.values[0] < 1e-12


def test_a_table_is_searched_by_the_control_in_its_rows():
    steps = np.linspace(1, 5, 4)
    X = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    _, found, logbook = run(toolbox_of(), oracle=vsr.TableOracle(X, law(X)), ngen=20)
    assert found[0].fitness.values[0] < 1e-20
    assert max(logbook.select("round")) > 1


def test_rows_that_hold_nothing_are_searched_all_at_once_and_that_is_said():
    X = np.random.default_rng(0).uniform(1, 5, (60, 3))
    with pytest.warns(UserWarning, match="hold nothing constant"):
        _, _, logbook = run(toolbox_of(), oracle=vsr.TableOracle(X, law(X)), ngen=2)
    assert set(logbook.select("round")) == {1}

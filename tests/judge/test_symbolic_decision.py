"""What the child process decides, asked in this process."""

import io
import json
import random
from fractions import Fraction

import pytest
from strategies import random_tree, reassociated

from deap_vsr.judge import _symbolic, _symbolic_worker
from deap_vsr.problems.equation import Variable
from deap_vsr.tree import Constant, MaskedTree


class InProcess:
    """A worker that answers in this process, and keeps the questions."""

    def __init__(self):
        self.questions = []

    def ask(self, question, time_limit):
        self.questions.append(json.dumps(question))
        return _symbolic_worker.decide(json.loads(self.questions[-1]))


@pytest.fixture
def worker(monkeypatch):
    worker = InProcess()
    monkeypatch.setattr(_symbolic, "_worker", worker)
    return worker


@pytest.fixture
def decide(worker):
    """Return a function that decides whether two formulas are the same."""

    def decide(answer, truth, low=0.5, high=3.0, tolerance=1e-6):
        trees = [MaskedTree.from_infix(t) if isinstance(t, str) else t for t in (answer, truth)]
        sign = "as_range" if low < 0 else "positive"
        variables = [Variable(f"x{i}", low, high, sign=sign) for i in (1, 2, 3)]
        return _symbolic.same(*trees, variables, tolerance, 10.0)

    return decide


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("x1 + x2", "x2 + x1"),
        ("(x1 + 1)**2", "x1**2 + 2*x1 + 1"),
        ("0.1*x1 + 0.2*x1", "0.3*x1"),
        ("x1/3", "0.3333333333333333*x1"),
        ("sin(0.1*x1 + 0.2*x1)", "sin(0.3*x1)"),
        ("x1*sqrt(x2)/sqrt(x3)", "sqrt(x1**2*x2/x3)"),
        ("log(x1) + 2*log(x2)", "log(x1*x2**2)"),
        ("exp(-x1**2/2)/exp(x2)", "exp(-x2 - x1**2/2)"),
        ("3", "1 + 2"),
    ],
)
def test_equal_formulas_are_the_same(decide, answer, truth):
    assert decide(answer, truth) is True


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("x1", "x2"),
        ("x1 + x2", "x1 - x2"),
        ("2*x1", "2.0001*x1"),
        ("x1 + 1", "x1"),
        ("x1/x2", "x2/x1"),
        ("x1**2", "x1**3"),
        ("(x1 + 1)/(x2 + 1)", "(x1 + 1)/(x2 + 2)"),
        ("x1*x2 + 1e-5", "x1*x2"),
    ],
)
def test_rational_functions_that_differ_are_decided_to_be_different(decide, answer, truth):
    assert decide(answer, truth) is False


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("sin(x1)", "sin(x2)"),
        ("x1*sin(x2)", "x2*sin(x1)"),
        ("sin(x1)", "cos(x1)"),
        ("2*sin(x1) + 3*cos(x2)", "3*sin(x1) + 2*cos(x2)"),
        ("sin(2*x1) + cos(3*x1)", "sin(3*x1) + cos(2*x1)"),
        ("2*sin(3*x1)", "3*sin(2*x1)"),
        ("sin(2*x1) + 3*sin(5*x1)", "3*sin(2*x1) + sin(5*x1)"),
        ("exp(x1)", "exp(2*x1)"),
        ("x1**2.5", "x1**2.6"),
        ("sqrt(x1 + 1)", "sqrt(x1) + 1"),
        ("sin(x1)", "sin(x1) + 1"),
        ("sin(x1)", "2*sin(x1)"),
        ("log(x1 + x2)", "log(x1) + log(x2)"),
        ("1 + x1 + x1**2/2 + x1**3/6", "exp(x1)"),
        ("sin(x1) + sin(2*x1)", "sin(x1) + sin(2*x1) + sin(3*x1)"),
        ("abs(x1)", "x1"),
    ],
)
def test_other_formulas_are_never_called_the_same(decide, answer, truth):
    assert decide(answer, truth, low=-3.0) is not True


def test_signs_of_the_ranges_are_used(decide):
    assert decide("sqrt(x1**2)", "x1") is True
    assert decide("sqrt(x1**2)", "x1", low=-3.0) is not True
    assert decide("sqrt(x1**2)", "abs(x1)", low=-3.0) is True


def test_constants_are_compared_with_the_given_tolerance(decide):
    assert decide("2.0000001*sin(x1)", "2*sin(x1)", tolerance=1e-6) is True
    assert decide("2.0000001*sin(x1)", "2*sin(x1)", tolerance=1e-9) is not True
    assert decide("2.0000001*x1 + x2", "2*x1 + x2", tolerance=1e-6) is True
    assert decide("2.0000001*x1 + x2", "2*x1 + x2", tolerance=1e-9) is False


def test_rounding_dust_does_not_make_another_formula(decide):
    assert decide("x1 + 1e-18*x2", "x1") is not False
    assert decide("0.9999999999999999*sin(x1)", "sin(x1)") is not False


def test_term_with_a_coefficient_of_its_own_is_no_dust_however_narrow_the_range(decide):
    # 1 + x^2 + x^4 + x^6 is not 1/(1 - x^2), though x^8 is 1e-16 here.
    assert decide("1 + x1**2 + x1**4 + x1**6", "1/(1 - x1**2)", low=0.001, high=0.01) is not True


def exact(tree, point):
    """Evaluate with fractions; None out of the domain."""
    stack = []
    for node in reversed(tree):
        if not node.arity:
            stack.append(point[node.value] if isinstance(node.value, str) else Fraction(node.value))
            continue
        operands = [stack.pop() for _ in range(node.arity)]
        try:
            stack.append(
                {
                    "add": lambda a, b: a + b,
                    "sub": lambda a, b: a - b,
                    "mul": lambda a, b: a * b,
                    "div": lambda a, b: a / b,
                    "n2": lambda a: a * a,
                    "neg": lambda a: -a,
                }[node.name](*operands)
            )
        except ZeroDivisionError:
            return None
    return stack[0]


def test_random_rational_functions_are_the_same_exactly_when_their_values_are(decide):
    rng = random.Random(12)
    names = ("add", "sub", "mul", "div", "n2", "neg")
    points = [{f"x{i}": Fraction(rng.randint(1, 10**6), rng.randint(1, 10**6)) for i in (1, 2, 3)} for _ in range(3)]
    decided = {True: 0, False: 0}
    for k in range(250):
        truth = random_tree(rng, size=24, names=names, numbers=(1.0, 2.0, 3.0, 0.5, -1.0))
        answer = MaskedTree(reassociated(truth, rng))
        if k % 2:
            constants = [i for i, node in enumerate(answer) if isinstance(node, Constant)]
            if constants:
                answer[rng.choice(constants)] = Constant(1.25, fitted=False)
        values = [[exact(tree, point) for tree in (answer, truth)] for point in points]
        if any(value is None for pair in values for value in pair):
            continue
        equal = all(a == b for a, b in values)
        if answer.to_sympy().free_symbols or truth.to_sympy().free_symbols:
            assert decide(answer, truth) is equal, (answer.to_infix(), truth.to_infix())
            decided[equal] += 1
    assert decided[True] > 80
    assert decided[False] > 25


def test_main_answers_one_line_for_each_line_whatever_sympy_does(decide, worker, monkeypatch, capsys):
    pairs = [("x1 + x1", "2*x1"), ("x1", "x2"), ("sin(x1 + 1.5707963267948966)", "cos(x1)")]
    assert [decide(*pair) for pair in pairs] == [True, False, None]
    lines = [*worker.questions[:2], "no JSON", json.dumps({"answer": []}), worker.questions[2]]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    _symbolic_worker.main()
    assert capsys.readouterr().out.splitlines() == ["ready", "true", "false", "null", "null", "null"]

import numpy as np
import pytest
from one_variable import make_table

from deap_vsr.engine.fitting import fit
from deap_vsr.forms.pairs import two_inner_constants
from deap_vsr.forms.table import Target
from deap_vsr.tree import MaskedTree

ROWS = [(1.0, 0.5), (2.0, 0.8), (0.7, 0.3)]


@pytest.mark.parametrize(
    ("law", "operators"),
    [
        (lambda x, a, b: a * np.exp(-b * x) - 2 * a * np.exp(-3.1 * x), ("add", "mul", "exp", "const")),
        (lambda x, a, b: a * np.sin(2.0 * x) + b * np.sin(5.3 * x), ("add", "mul", "sin", "const")),
        (lambda x, a, b: a * x**1.7 * np.exp(-b * x), ("add", "mul", "exp", "pow", "const")),
        (lambda x, a, b: a * np.exp(-b * x) * np.cos(4.0 * x), ("add", "mul", "exp", "cos", "const")),
        (
            lambda x, a, b: a * np.exp(-b * x) * np.cos(4.0 * x),
            ("add", "mul", "div", "n3", "sqrt", "exp", "log", "sin", "cos", "const"),
        ),
        (lambda x, a, b: a * np.log(x + 0.9) + np.sqrt(x + 3.0), ("add", "mul", "log", "sqrt", "const")),
    ],
)
def test_two_inner_constants_are_found(law, operators):
    table = make_table(law, ROWS, function_set=operators)
    ((forms, tried),) = two_inner_constants(Target.plain(table))
    assert tried > 100
    errors = [
        fit(MaskedTree(form.nodes), table.dataset().trial(0), starts=form.starts, n_starts=0).errors[0]
        for form in forms
    ]
    assert min(errors) < 1e-18
    used = {node.name for form in forms for node in form.nodes if node.arity}
    assert used <= {*operators, "div", "inv"} - ({"div", "inv"} - set(operators))


def test_where_sums_cannot_be_written_there_are_none():
    table = make_table(lambda x, a, b: a * x, ROWS, function_set=("mul", "exp", "const"))
    assert list(two_inner_constants(Target.plain(table))) == []

"""What changing a variable costs, in equation files."""

import json
import math
from dataclasses import replace

import pytest

from deap_vsr import EquationOracle, Variable, load_equation
from deap_vsr.errors import EquationError
from deap_vsr.problems.equation import format_equation, parse_equation


# --- what changing a variable costs, in equation files ------------------------------------


def test_costs_are_written_where_there_are_some_and_read_back():
    equation = load_equation("feynman-unit/I.39.22")
    assert "cost" not in format_equation(equation)
    dear = replace(equation, variables=(replace(equation.variables[0], cost=2.5), *equation.variables[1:]))
    text = format_equation(dear)
    assert text.count('"cost": 2.5') == text.count("cost") == 1
    assert parse_equation(text) == dear
    assert EquationOracle(dear).variables[0].cost == 2.5


@pytest.mark.parametrize("cost", [-1, "dear", None, True, "inf", [1]])
def test_a_cost_that_is_none_is_refused_with_file_and_field(cost):
    fields = json.loads(format_equation(load_equation("feynman-unit/I.39.22")))
    fields["variables"][1]["cost"] = cost
    with pytest.raises(EquationError, match=r"law\.json: variables\[1\]\.cost.*expected a finite number >= 0"):
        parse_equation(json.dumps(fields), "law.json")


@pytest.mark.parametrize("cost", [-0.5, math.inf, math.nan])
def test_a_variable_of_such_a_cost_cannot_be_made(cost):
    with pytest.raises(EquationError, match=r"variable x1: cost.*expected a finite number >= 0"):
        Variable("x1", 0.0, 1.0, cost=cost)

"""Two evaluators that share no code with the package, one of them with a bound on rounding errors."""

from __future__ import annotations

import math

import numpy as np

from deap_vsr.tree.operators import CATALOGUE

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)

_LINEAR = ("add", "sub", "neg")


def _square(x):
    return x * x


FUNCTIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "inv": lambda a: 1.0 / a,
    "neg": lambda a: -a,
    "n2": _square,
    "n3": lambda a: a * a * a,
    "n4": lambda a: _square(_square(a)),
    "n5": lambda a: _square(_square(a)) * a,
    "n6": lambda a: _square(a * a * a),
    "n8": lambda a: _square(_square(_square(a))),
    "pow": np.float_power,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "abs": np.abs,
}


def evaluate(tree, X):
    """Return the values of `tree` at the rows of X, recursively."""

    def value(at):
        node = tree[at]
        if not node.arity:
            is_variable = isinstance(node.value, str)
            return X[:, int(node.value[1:]) - 1] if is_variable else np.float64(node.value), at + 1
        operands, at = [], at + 1
        for _ in range(node.arity):
            operand, at = value(at)
            operands.append(operand)
        return FUNCTIONS[node.name](*operands), at

    with np.errstate(all="ignore"):
        result, end = value(0)
    assert end == len(tree)
    return np.array(np.broadcast_to(result, len(X)), dtype=float)


def condition(tree, x):
    """Evaluate at one point with a running first-order bound on the rounding error.

    Returns
    -------
    value, condition, largest
        `condition` is the bound over the unit of rounding of the value: 1 if only the last
        operation rounds, inf where no bound holds. `largest` is the largest magnitude met.
    """
    stack: list[tuple[np.float64, float]] = []
    largest = 0.0
    with np.errstate(all="ignore"):
        for node in reversed(tree):
            if not node.arity:
                number = x[int(node.value[1:]) - 1] if isinstance(node.value, str) else node.value
                stack.append((np.float64(number), 0.0))
            else:
                operands = [stack.pop() for _ in range(node.arity)]
                stack.append(_step(node.name, operands))
            largest = max(largest, abs(float(stack[-1][0]))) if math.isfinite(stack[-1][0]) else math.inf
        value, error = stack[0]
        if error == 0:
            return float(value), 1.0, largest
        return float(value), max(float(error / (EPS * abs(value))), 1.0), largest


def _step(name, operands):
    values = [value for value, _ in operands]
    value = FUNCTIONS[name](*values)
    slopes = CATALOGUE[name].derivative(value, *values)
    error = 0.0 if name in ("neg", "abs") else EPS * abs(value) + TINY * EPS
    exact = all(e == 0 for _, e in operands) and name not in ("pow", "exp")
    if value == 0 and exact and (name in _LINEAR or 0 in values):
        error = 0.0  # a true zero, 0 * x or sin(0); one that comes from underflow is not
    for (operand, operand_error), slope in zip(operands, slopes, strict=True):
        if operand_error == 0:
            continue
        if name not in _LINEAR and not operand_error <= 1e-3 * min(abs(operand), 1.0):
            return value, math.inf  # too large for a first-order bound
        error += abs(slope) * operand_error
    return value, float(error) if not math.isnan(error) else math.inf

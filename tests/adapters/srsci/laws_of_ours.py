"""Laws of the stand-in: what is computed, how many variables, which operators, and whether points are columns."""

import numpy as np

OPERATORS = ["add", "sub", "mul", "div", "sin", "const"]
LAWS = {
    "sine.in": (lambda a, b: 0.1 * a + np.sin(b), 2, OPERATORS, True),
    "rows.in": (lambda a, b: 0.1 * a + np.sin(b), 2, OPERATORS, False),
    "ratio.in": (lambda a, b, c: 2.5 * a * b / c, 3, OPERATORS, True),
}

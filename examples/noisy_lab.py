"""A law from noisy measurements, with standard errors: a capacitor that is discharged through a resistor.

The laboratory answers with a meter that is off by 0.02 V or so; asked twice, it gives two answers. That is how the
noise is measured. No library of laws is needed, only the operators that the answer may use.
"""

import numpy as np

from deap_vsr import CallableOracle, discover


def voltage(X):
    """Return the voltage at time x1 after a start at x2, with resistance x3 and capacity 0.8; the laboratory, here."""
    return X[:, 1] * np.exp(-X[:, 0] / (X[:, 2] * 0.8))


def main():
    oracle = CallableOracle(
        voltage, [(0.1, 3.0), (1.0, 9.0), (0.5, 2.0)], ["add", "sub", "mul", "div", "exp", "const"], noise=0.02, seed=0
    )
    result = discover(oracle, max_evaluations=20_000_000)
    print("found:", result.expression)
    print("standard errors of its constants:", ", ".join(f"{error:.2g}" for error in result.standard_errors))
    print(f"noise {result.noise:.3f}, {result.oracle_queries} measurements, {result.seconds:.1f} s")
    return result


if __name__ == "__main__":
    main()

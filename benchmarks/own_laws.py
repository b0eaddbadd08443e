"""Twenty laws as their owners have them: Python functions with named arguments, ranges, and a formula to judge by.

They were written down, and committed, before any of them was run. None is chosen for what a method can do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

#: What the owner of any such law might allow.
OPERATORS = ("add", "sub", "mul", "div", "n2", "n3", "n4", "sqrt", "exp", "log", "sin", "cos", "const")


@dataclass(frozen=True)
class OwnLaw:
    """A function, the ranges of its arguments, and what it computes as text in their names."""

    function: Callable[..., float]
    variables: dict[str, tuple[float, float]]
    formula: str
    operators: tuple[str, ...] = OPERATORS

    @property
    def name(self) -> str:
        return self.function.__name__


def heat_loss(h, A, T_in, T_out):
    return h * A * (T_in - T_out)


def inhibited_enzyme(S, B):
    return 3.2 * S / (0.8 * (1 + B / 1.5) + S)


def reaction_rate(A, E, T):
    return A * math.exp(-1000 * E / (8.314 * T))


def drag(rho, v, d):
    return 0.5 * 0.47 * rho * v**2 * math.pi * d**2 / 4


def pressure_drop(mu, L, Q, d):
    return 128 * mu * L * Q / (math.pi * d**4)


def channel_flow(n, R, S):
    return R ** (2 / 3) * math.sqrt(S) / n


def radiation(eps, A, T1, T2):
    return 5.67 * eps * A * ((T1 / 100) ** 4 - (T2 / 100) ** 4)


def vapour_pressure(rh, T):
    return rh * 6.112 * math.exp(17.62 * T / (243.12 + T))


def damped(A, b, w, t):
    return A * math.exp(-b * t) * math.cos(w * t)


def focal_length(n, R1, R2):
    return 1 / ((n - 1) * (1 / R1 - 1 / R2))


def resistors(R0, R1, R2):
    return R0 + R1 * R2 / (R1 + R2)


def charging(V, R, C, t):
    return V * (1 - math.exp(-t / (R * C)))


def throw(v, theta):
    return v**2 * math.sin(2 * theta) / 9.81


def head(p, rho, v, h):
    return p + rho * v**2 / 2 + 9.81 * rho * h


def adsorption(q, K1, p1, K2, p2):
    return q * K1 * p1 / (1 + K1 * p1 + K2 * p2)


def real_gas(n, T, V):
    return 0.083 * n * T / (V - 0.043 * n) - 3.6 * n**2 / V**2


def deflection(F, L, E, b, h):
    return F * L**3 / (4 * E * b * h**3)


def cell_voltage(E0, T, c1, c2):
    return E0 + 0.0862 * T * math.log(c1 / c2)


def growth(K, N0, r, t):
    return K / (1 + (K - N0) / N0 * math.exp(-r * t))


def wall(T1, T2, h1, d, k, h2):
    return (T1 - T2) / (1 / h1 + d / k + 1 / h2)


LAWS = (
    OwnLaw(heat_loss, {"h": (5, 50), "A": (1, 20), "T_in": (18, 25), "T_out": (-15, 15)}, "h*A*(T_in - T_out)"),
    OwnLaw(inhibited_enzyme, {"S": (0.1, 10), "B": (0, 5)}, "3.2*S/(0.8*(1 + B/1.5) + S)"),
    OwnLaw(reaction_rate, {"A": (1, 10), "E": (5, 20), "T": (280, 400)}, "A*exp(-1000*E/(8.314*T))"),
    OwnLaw(drag, {"rho": (0.9, 1.3), "v": (1, 40), "d": (0.05, 0.5)}, "0.05875*pi*rho*v**2*d**2"),
    OwnLaw(
        pressure_drop,
        {"mu": (0.5, 2), "L": (1, 10), "Q": (0.1, 1), "d": (0.5, 2)},
        "128/pi*mu*L*Q/d**4",
    ),
    OwnLaw(
        channel_flow,
        {"n": (0.01, 0.05), "R": (0.2, 3), "S": (0.0005, 0.01)},
        "R**0.6666666666666666*sqrt(S)/n",
        (*OPERATORS, "pow"),
    ),
    OwnLaw(
        radiation,
        {"eps": (0.1, 1), "A": (0.5, 4), "T1": (350, 900), "T2": (280, 340)},
        "5.67*eps*A*((T1/100)**4 - (T2/100)**4)",
    ),
    OwnLaw(vapour_pressure, {"rh": (0.1, 1), "T": (1, 40)}, "rh*6.112*exp(17.62*T/(243.12 + T))"),
    OwnLaw(damped, {"A": (0.5, 2), "b": (0.1, 1), "w": (1, 4), "t": (0, 3)}, "A*exp(-b*t)*cos(w*t)"),
    OwnLaw(focal_length, {"n": (1.3, 1.9), "R1": (1, 2), "R2": (3, 6)}, "1/((n - 1)*(1/R1 - 1/R2))"),
    OwnLaw(resistors, {"R0": (1, 5), "R1": (1, 20), "R2": (1, 20)}, "R0 + R1*R2/(R1 + R2)"),
    OwnLaw(charging, {"V": (1, 12), "R": (1, 10), "C": (0.5, 3), "t": (0.5, 20)}, "V*(1 - exp(-t/(R*C)))"),
    OwnLaw(throw, {"v": (5, 30), "theta": (0.2, 1.4)}, "v**2*sin(2*theta)/9.81"),
    OwnLaw(
        head, {"p": (10, 500), "rho": (0.7, 1.2), "v": (0, 10), "h": (0, 30)}, "p + rho*v**2/2 + 9.81*rho*h"
    ),
    OwnLaw(
        adsorption,
        {"q": (1, 6), "K1": (0.2, 3), "p1": (0.1, 5), "K2": (0.2, 3), "p2": (0.1, 5)},
        "q*K1*p1/(1 + K1*p1 + K2*p2)",
    ),
    OwnLaw(
        real_gas, {"n": (0.5, 2), "T": (250, 400), "V": (0.5, 5)}, "0.083*n*T/(V - 0.043*n) - 3.6*n**2/V**2"
    ),
    OwnLaw(
        deflection,
        {"F": (100, 1000), "L": (1, 4), "E": (10, 210), "b": (2, 10), "h": (5, 20)},
        "F*L**3/(4*E*b*h**3)",
    ),
    OwnLaw(
        cell_voltage,
        {"E0": (100, 1500), "T": (280, 350), "c1": (0.01, 2), "c2": (0.01, 2)},
        "E0 + 0.0862*T*log(c1/c2)",
    ),
    OwnLaw(
        growth,
        {"K": (50, 200), "N0": (1, 20), "r": (0.2, 1), "t": (0, 10)},
        "K/(1 + (K - N0)/N0*exp(-r*t))",
    ),
    OwnLaw(
        wall,
        {"T1": (15, 25), "T2": (-10, 10), "h1": (5, 12), "d": (0.1, 0.5), "k": (0.03, 1), "h2": (10, 40)},
        "(T1 - T2)/(1/h1 + d/k + 1/h2)",
    ),
)  # fmt: skip

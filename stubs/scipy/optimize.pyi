"""The part of scipy.optimize that we call. scipy itself ships no types."""

from collections.abc import Callable
from typing import Any

def minimize(fun: Any, x0: Any, *, method: str, jac: Any = ..., options: dict[str, Any] = ...) -> Any: ...
def least_squares(
    fun: Any,
    x0: Any,
    *,
    jac: Any = ...,
    method: str = ...,
    x_scale: Any = ...,
    ftol: float = ...,
    xtol: float = ...,
    gtol: float = ...,
    max_nfev: int = ...,
) -> Any: ...
def basinhopping(fun: Any, x0: Any, *, niter: int, minimizer_kwargs: dict[str, Any], rng: Any) -> Any: ...
def shgo(fun: Any, bounds: Any, *, n: int, iters: int) -> Any: ...
def dual_annealing(fun: Any, bounds: Any, *, maxiter: int, rng: Any) -> Any: ...
def direct(fun: Any, bounds: Any, *, maxfun: int, maxiter: int) -> Any: ...
def minimize_scalar(fun: Any, *, bounds: Any, method: str, options: dict[str, Any]) -> Any: ...

def fmin_l_bfgs_b(
    func: Callable[[Any], tuple[float, Any]],
    x0: Any,
    *,
    bounds: Any = ...,
    maxfun: int = ...,
) -> tuple[Any, float, dict[str, Any]]: ...

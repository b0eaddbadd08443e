"""Kernels are compiled before any run: all of them, once a machine, and not on its clock."""

import importlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from deap import gp
from numba.core import event

from deap_vsr import CallableOracle, discover, fit, methods
from deap_vsr.engine import jit, warm
from deap_vsr.engine.trials import fit_trials
from deap_vsr.lab import budget
from deap_vsr.lab.trials import Trial
from deap_vsr.tree import Constant, MaskedTree

GAS = "feynman-unit/I.39.22"
MODULES = ("kernels", "householder", "levenberg", "trials", "subsets")

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def signatures():
    """Return how many kinds of arguments each kernel has been compiled for, or read from its cache."""
    modules = [importlib.import_module(f"deap_vsr.engine.{name}") for name in MODULES]
    found = {f"{m.__name__}.{name}": value for m in modules for name, value in vars(m).items()}
    return {name: len(value.signatures) for name, value in found.items() if hasattr(value, "signatures")}


@compiled_only
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("method", methods.OURS)
def test_nothing_is_compiled_within_a_run(method, noise):
    warm.compile_kernels()
    before = signatures()
    assert before["deap_vsr.engine.trials.fit_trials"] == 1
    discover(GAS, method, noise=noise, max_evaluations=3_000)
    assert signatures() == before


@compiled_only
@pytest.mark.parametrize("optimizer", ["BFGS", "Nelder-Mead", "least_squares"])
def test_nothing_is_compiled_for_scipy_s_optimisers(optimizer):
    warm.compile_kernels()
    before = signatures()
    discover(GAS, "vsr-gp", optimizer=optimizer, max_evaluations=300)
    assert signatures() == before


@compiled_only
@pytest.mark.parametrize("n_trials", [1, 3])
@pytest.mark.parametrize("options", [{}, {"time_limit": 1.0}, {"enough": 0, "starts": [[1, 2]]}])
def test_nothing_is_compiled_for_whole_numbers_and_a_user_s_primitives(n_trials, options):
    warm.compile_kernels()
    before = signatures()
    pset = gp.PrimitiveSet("MAIN", 1, prefix="x")
    pset.addPrimitive(np.multiply, 2, name="mul")
    pset.addPrimitive(np.arctan2, 2, name="arctan2")
    X = np.linspace(1, 2, 20)[:, None]
    trials = [Trial(X, np.asfortranarray(3 * np.arctan2(k, X[:, 0]))) for k in range(1, 1 + n_trials)]
    mul, arctan2, x = (pset.mapping[name] for name in ("mul", "arctan2", "x0"))
    fit(MaskedTree([mul, Constant(1.0), arctan2, Constant(2.0), x]), trials, pset=pset, **options)
    fit(MaskedTree.from_infix("C*sin(C*x1)"), trials, **options)
    assert signatures() == before


@compiled_only
def test_kernels_that_are_there_are_read_without_a_word(run_python):
    warm.compile_kernels()
    if warm.cache_folder() is None:
        pytest.skip("nothing can be written here")
    code = "import sys; sys.stderr = sys.stdout; from deap_vsr.engine import warm; print(warm.compile_kernels())"
    assert run_python(code) == "False\n"


@compiled_only
def test_what_must_be_compiled_is_said_once(capsys):
    with event.install_listener("numba:compile", warm._Notice()):
        assert not capsys.readouterr().err
        for number in (1, 1.0, 2):
            numba.njit(lambda x: x + 1)(number)
    assert capsys.readouterr().err == warm.NOTICE + "\n"


def test_compiling_is_not_on_the_clock_of_a_run(monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)

    def compile_slowly():
        clock.now += 100.0

    monkeypatch.setattr(budget, "time", clock)
    monkeypatch.setattr(methods, "compile_kernels", compile_slowly)
    law = CallableOracle(lambda X: 2.0 * X[:, 0], [(1.0, 2.0)])
    result = discover(law, time_limit=5.0)
    assert (result.stopped_by, result.seconds, clock.now) == ("done", 0.0, 100.0)


@compiled_only
def test_a_kernel_is_not_read_from_the_cache_where_another_that_it_calls_has_changed(tmp_path):
    """numba itself looks at the kernel's own file only."""
    package = Path(jit.__file__).parents[1]
    for source in jit.SOURCES:
        (tmp_path / source).parent.mkdir(exist_ok=True)
        shutil.copy(package / source, tmp_path / source)
    assert jit.digest_of(tmp_path) == jit.DIGEST
    with (tmp_path / "tree/operators.py").open("a") as file:
        file.write("# changed\n")
    assert jit.digest_of(tmp_path) != jit.DIGEST
    cached = fit_trials._cache._impl.filename_base
    assert jit.DIGEST in cached


@pytest.mark.parametrize("changed", range(2), ids=["numba", "numpy"])
def test_kernels_that_another_version_of_numpy_or_of_the_compiler_has_made_are_not_read(changed):
    # Fails at 6e01465: numba looks at its own version, and kernels of another numpy were read.
    versions = [numba.__version__, np.__version__]
    folder = Path(jit.__file__).parents[1]
    assert jit.digest_of(folder, versions) == jit.DIGEST
    versions[changed] += ".1"
    assert jit.digest_of(folder, versions) != jit.DIGEST


def test_every_module_with_kernels_is_part_of_what_tells_versions_apart():
    folder = Path(jit.__file__).parent
    using = {
        f"engine/{path.name}" for path in folder.glob("*.py") if "from deap_vsr.engine.jit import" in path.read_text()
    }
    assert using <= set(jit.SOURCES)

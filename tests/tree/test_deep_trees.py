"""Depth alone breaks nothing, and text too deep to be read is refused, not crashed on."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from strategies import keys

from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree
from deap_vsr.tree.simplify import canonical, fold, structural_hash

DEPTH = 5000
X = np.array([[0.3, 0.7], [1.1, -0.4]])

SHAPES = {
    "unary": [("sin", "unary")] * DEPTH + [("x1", "var")],
    "signs": [("neg", "unary")] * DEPTH + [("x1", "var")],
    "powers": [("n2", "unary")] * DEPTH + [("x1", "var")],
    "left sum": [("add", "binary")] * DEPTH + [("x1", "var")] + [("x2", "var")] * DEPTH,
    "right sum": [("add", "binary"), ("x1", "var")] * DEPTH + [("x2", "var")],
    "left difference": [("sub", "binary")] * DEPTH + [("x1", "var")] + [("0.5", "const")] * DEPTH,
    "right difference": [("sub", "binary"), ("x1", "var")] * DEPTH + [("0.5", "const")],
    "right power": [("pow", "binary"), ("x1", "var")] * DEPTH + [("x1", "var")],
    "left quotient": [("div", "binary")] * DEPTH + [("x1", "var")] + [("-2", "const")] * DEPTH,
    "mixed": [("mul", "binary"), ("cos", "unary"), ("add", "binary"), ("x1", "var")] * (DEPTH // 3)
    + [("x2", "var")]
    + [("2", "const")] * (DEPTH // 3),
    "constants": [("add", "binary"), ("1", "const")] * DEPTH + [("1", "const")],
}


@pytest.fixture(params=SHAPES, name="tree")
def deep_tree(request):
    return MaskedTree.from_tokens(SHAPES[request.param])


def test_deep_tree_is_built_copied_and_pickled(tree):
    assert tree.depth >= DEPTH - 2
    tree = tree.with_mask([i % 2 for i in range(len(tree))])
    for twin in (copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert keys(twin) == keys(tree)


def test_deep_tree_is_printed(tree):
    assert len(tree.to_tokens()) == len(tree)
    assert len(tree.to_infix()) > DEPTH
    assert len(tree.to_latex()) > DEPTH
    assert len(str(tree)) > DEPTH


def test_deep_tree_becomes_a_graph_and_back(tree):
    assert MaskedTree.from_networkx(tree.to_networkx()) == tree


@pytest.mark.parametrize("shape", ["unary", "right sum", "left difference"])
def test_deep_tree_is_ordered_and_hashed(shape):
    tree = MaskedTree.from_tokens(SHAPES[shape])
    form = canonical(tree)
    assert len(form) == len(tree)
    assert structural_hash(tree) == structural_hash(form)


def test_deep_tree_is_refused_by_sympy_and_its_text_read_back_or_refused(tree):
    with pytest.raises(ExpressionError, match="too deep"):
        tree.to_sympy()
    assert read_back(tree.to_infix()) in ("too deep", tree.to_tokens())


def read_back(text):
    """Newer parsers manage some of the deep texts."""
    try:
        return MaskedTree.from_infix(text).to_tokens()
    except ExpressionError as error:
        return "too deep" if "too deep" in str(error) else str(error)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("signs", X[:, 0]),
        ("right sum", DEPTH * X[:, 0] + X[:, 1]),
        ("left sum", X[:, 0] + DEPTH * X[:, 1]),
        ("left difference", X[:, 0] - DEPTH * 0.5),
        ("right difference", np.full(2, 0.5)),
        ("left quotient", np.zeros(2)),
        ("powers", [0.0, np.inf]),
        ("constants", np.full(2, DEPTH + 1.0)),
    ],
)
def test_deep_tree_is_evaluated(shape, expected):
    values = MaskedTree.from_tokens(SHAPES[shape]).evaluate(X)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-10)


def test_deep_constants_fold_to_one_number():
    assert fold(MaskedTree.from_tokens(SHAPES["constants"])).to_infix() == "5001"


# --- hostile text -------------------------------------------------------------------------

HOSTILE = {
    "minus signs": "'-' * 100_000 + 'x1'",
    "minus signs, no operand": "'-' * 100_000",
    "spaced minus signs": "'- ' * 99_000 + 'x1'",
    "plus signs": "'+' * 100_000 + 'x1'",
    "mixed signs": "'+-' * 50_000 + 'x1'",
    "tildes": "'~ ' * 90_000 + 'x1'",
    "nots": "'not ' * 40_000 + 'x1'",
    "signs on many lines": "'-\\\\\\n' * 60_000 + 'x1'",
    "open parentheses": "'(' * 100_000",
    "parentheses": "'(' * 90_000 + 'x1' + ')' * 90_000",
    "closing parentheses": "')' * 100_000",
    "brackets": "'[' * 100_000",
    "braces": "'{' * 100_000",
    "f-string": "'f\"{' * 20_000",
    "powers": "'x1**' * 49_000 + 'x1'",
    "powers, no operand": "'x1**' * 50_000",
    "powers of decimals": "'1.5**' * 30_000 + '1'",
    "powers of calls": "'sin(x1)**' * 20_000 + 'x1'",
    "powers of groups": "'(x1)**' * 30_000 + 'x1'",
    "signed powers": "'x1**-' * 30_000 + 'x1'",
    "spaced powers": "'x1 ** ' * 25_000 + 'x1'",
    "integer powers": "'x1' + '**2' * 60_000",
    "sines": "'sin(' * 10_000",
    "nested sines": "'sin(' * 10_000 + 'x1' + ')' * 10_000",
    "nested sums": "'x1+(' * 30_000 + 'x1' + ')' * 30_000",
    "long sum": "'x1+' * 60_000 + 'x1'",
    "long product": "'x1*' * 60_000 + 'x1'",
    "long difference": "'x1-' * 60_000 + 'x1'",
    "long quotient": "'x1/' * 60_000 + 'x1'",
    "lambdas": "'lambda:' * 25_000 + 'x1'",
    "ternaries": "'x1 if x1 else ' * 13_000 + 'x1'",
    "comparisons": "'x1<' * 60_000 + 'x1'",
    "ands": "'x1 and ' * 25_000 + 'x1'",
    "attributes": "'x1' + '.a' * 90_000",
    "subscripts": "'x1' + '[0]' * 60_000",
    "calls": "'x1' + '()' * 90_000",
    "walrus": "'(a:=' * 30_000 + '1' + ')' * 30_000",
    "tuple": "'x1,' * 60_000",
    "digits": "'9' * 199_000",
    "one long name": "'x' * 199_000",
    "stars": "'*' * 100_000",
    "power of one long name": "'**' + 'a' * 190_000",
    "null bytes": "'\\0' * 100_000",
    "too long": "'x1+' * 1_000_000 + 'x1'",
    "backslashes": "'\\\\\\n' * 90_000",
    "quotes": "'\"' * 99_999",
}

#: Formulas after all, if long ones: a parser that manages them is right.
FORMULAS = ("integer powers", "long sum", "long product", "long difference", "long quotient")

PROGRAM = """
import faulthandler, sys
faulthandler.enable()
from deap_vsr.errors import ExpressionError
from deap_vsr.tree import MaskedTree
for name, text in {{{cases}}}.items():
    try:
        MaskedTree.from_infix(text)
    except ExpressionError as error:
        print("refused", name, flush=True)
    else:
        print("READ", name, flush=True)
"""


def refused_in_another_process(stack_kilobytes):
    cases = ", ".join(f"{name!r}: {expression}" for name, expression in HOSTILE.items())
    limit = f"import threading; threading.stack_size({stack_kilobytes} * 1024)\n" if stack_kilobytes else ""
    program = PROGRAM.format(cases=cases)
    if stack_kilobytes:
        body = "\n".join("    " + line for line in program.strip().splitlines())
        program = f"{limit}def work():\n{body}\nt = threading.Thread(target=work)\nt.start()\nt.join()\n"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return run, [line.removeprefix("refused ") for line in run.stdout.splitlines()]


@pytest.mark.parametrize("text", ["x" * 100_000, "f" * 100_000 + "(x1)", "x1 +" * 30_000, "'" * 99_999])
def test_message_about_long_text_is_short(text):
    with pytest.raises(ExpressionError) as caught:
        MaskedTree.from_infix(text)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("stack_kilobytes", [0, 8192], ids=["main thread", "worker thread"])
def test_hostile_text_is_refused_without_crashing_the_process(stack_kilobytes):
    run, refused = refused_in_another_process(stack_kilobytes)
    lines = [line.removeprefix("READ ") if line.removeprefix("READ ") in FORMULAS else line for line in refused]
    assert lines == list(HOSTILE), run.stderr[-500:]
    assert run.returncode == 0, run.stderr[-500:]

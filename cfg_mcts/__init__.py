"""Grammars and Monte Carlo tree search for vertical symbolic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cfg_mcts.derivation import Deriver, Limits
from cfg_mcts.grammar import Grammar, GrammarError, Rule

if TYPE_CHECKING:
    from cfg_mcts.plot import plot_tree
    from cfg_mcts.regressor import MctsRegressor
    from cfg_mcts.search import SearchTree, mcts
    from cfg_mcts.store import save_tree

__all__ = [
    "Deriver",
    "Grammar",
    "GrammarError",
    "Limits",
    "MctsRegressor",
    "Rule",
    "SearchTree",
    "mcts",
    "plot_tree",
    "save_tree",
]

#: Where the names live that need numba, networkx or matplotlib, which are not imported before one of them is used.
_LAZY = {
    "MctsRegressor": "regressor",
    "SearchTree": "search",
    "mcts": "search",
    "plot_tree": "plot",
    "save_tree": "store",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)

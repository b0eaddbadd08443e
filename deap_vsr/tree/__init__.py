"""Masked trees: DEAP trees whose nodes know whether search may change them; operators, notations, canonical form."""

from __future__ import annotations

from deap_vsr.tree.masked import (
    Constant,
    FrozenPrimitive,
    FrozenTerminal,
    MaskedTree,
    Node,
    Token,
    Vocabulary,
    format_number,
    is_ephemeral,
    is_mutable,
    is_number,
    is_open,
    is_variable,
    node_from_name,
    primitive_set,
    random_constant,
    variable,
    with_flag,
)

__all__ = [
    "Constant",
    "FrozenPrimitive",
    "FrozenTerminal",
    "MaskedTree",
    "Node",
    "Token",
    "Vocabulary",
    "format_number",
    "is_ephemeral",
    "is_mutable",
    "is_number",
    "is_open",
    "is_variable",
    "node_from_name",
    "primitive_set",
    "random_constant",
    "variable",
    "with_flag",
]

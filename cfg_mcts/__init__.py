"""Grammars and Monte Carlo tree search for vertical symbolic regression (in preparation)."""

"""Formulas for the rows of a table, with no oracle to ask: one module for each step, and rows alone decide."""

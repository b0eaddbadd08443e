"""The systematic regressor: one-variable forms, simple to complex, built by rule from the operator set.

Stages, each a function of a :class:`~deap_vsr.forms.table.Target`: sparse sums, ratios, roots, one inner constant,
small skeletons; peeling makes more targets of one. :mod:`deap_vsr.forms.stage` has them in order, and is the door for
others.
"""

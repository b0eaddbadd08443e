"""The shared control-variable half: equation files, oracles, experiments. Knows no regressor."""

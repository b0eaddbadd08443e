"""GP with masks: DEAP operators, flat loops, and GP as a regressor."""

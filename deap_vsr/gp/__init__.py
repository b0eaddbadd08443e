"""GP with masks: DEAP operators, one round, GP as a regressor with any toolbox, and the whole vertical search."""

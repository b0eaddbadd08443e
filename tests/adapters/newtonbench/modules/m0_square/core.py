"""A stand-in of our own for a module of NewtonBench: the same functions and arguments; laws that are not its own."""

import numpy as np
from modules.judge import evaluate_law as shared_evaluate_law
from modules.m0_square.laws import get_ground_truth_law


def run_experiment_for_module(
    charge, size, noise_level, difficulty="easy", system="vanilla_equation", law_version=None
):
    law, _ = get_ground_truth_law(difficulty, law_version)
    if system != "vanilla_equation":
        return {"time": ["0.0"], "y": ["0.0"]}
    y = law(charge, size)
    return y + np.random.normal(0.0, noise_level * abs(y)) if noise_level else y


def evaluate_law(llm_function_str, param_description, difficulty="easy", law_version=None, judge_model_name="", **more):
    law, _ = get_ground_truth_law(difficulty, law_version)
    charges, sizes = (np.exp(np.random.uniform(0.0, np.log(high), 2000)) for high in (1e3, 10))
    return shared_evaluate_law(
        llm_function_str=llm_function_str, gt_law=law, test_data={"q": charges, "size": sizes},
        parameter_mapping={"charge": "q", "size": "size"}, param_description=param_description,
        judge_model_name=judge_model_name,
    )  # fmt: skip

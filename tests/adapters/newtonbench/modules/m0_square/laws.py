"""Laws of the stand-in."""


def _easy(charge: float, size: float) -> float:
    return 3.2 * charge / size**2


def _hard(charge: float, size: float) -> float:
    return 0.5 * charge**1.5 * size if charge > 0 else float("nan")


LAWS = {"easy": {"v0": _easy}, "hard": {"v0": _hard}}


def get_ground_truth_law(difficulty, law_version=None):
    if difficulty not in LAWS or law_version not in LAWS[difficulty]:
        raise ValueError(f"Invalid law {difficulty} {law_version}")
    return LAWS[difficulty][law_version], law_version


def get_available_law_versions(difficulty):
    if difficulty not in LAWS:
        raise ValueError(f"Invalid difficulty {difficulty}")
    return list(LAWS[difficulty])

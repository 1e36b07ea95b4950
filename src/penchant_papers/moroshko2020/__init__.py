"""Source M: Moroshko et al. 2020, initialization scale against training accuracy."""

from penchant.lab import Paper

paper = Paper(
    "M",
    package=__name__,
    title="Implicit Bias in Deep Linear Classification: Initialization Scale vs Training Accuracy",
    authors=(
        *("Edward Moroshko", "Suriya Gunasekar", "Blake Woodworth"),
        *("Jason D. Lee", "Nathan Srebro", "Daniel Soudry"),
    ),
    year=2020,
    statements={
        "M-F1": "figures.figure_1",
        "M-T1": "theorem_1",
        "M-squared": "squared_loss",
        "M-T2": "theorem_2",
        "M-F2": "figures.figure_2",
        "M-layers": "equal_layers",
        "M-L3": "lemmas.lemma_3",
        "M-T4": "theorem_4",
        "M-C5": "condition_5",
        "M-T6": "theorem_6",
        "M-T7": "theorem_7",
        "M-l1": "l1_stationary",
        "M-depth": "role_of_depth",
        "M-F3": "figures.figure_3",
        "M-area": "separating",
        "M-num": "numbers",
        "M-open": "open_question",
        "M-F4": "figures.figure_4",
        "M-F5": "figures.figure_5",
        "M-I": "lemmas.inequalities",
        "M-L10": "lemmas.closed_form",
        "M-L11": "lemmas.norm_bound",
        "M-L12": "lemmas.closed_form",
        "M-L13": "lemmas.norm_bound",
        "M-F6": "figures.figure_6",
        "M-F7": "figures.figure_7",
        "M-F8": "figures.figure_8",
        "M-F9": "figures.figure_9",
    },
)

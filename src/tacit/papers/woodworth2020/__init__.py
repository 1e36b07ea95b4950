"""Source W: Woodworth et al. 2020, kernel and rich regimes."""

STATEMENTS = {
    "W-K": "tangent_kernel",
    "W-T1": "theorem_1",
    "W-GA": "general_approach",
    "W-T2": "theorem_2",
    "W-A": "asymptotics",
    "W-F1": "figure_1",
    "W-R": "explicit_regularizer",
    "W-T3": "theorem_3",
    "W-T4": "theorem_4",
    "W-F5": "figure_5",
    "W-C": "balance",
    "W-L5": "lemma_5",
    "W-L6": "lemma_6",
    "W-L7": "lemma_7",
    "W-L8": "lemma_8",
    "W-T9": "theorem_9",
    "W-C10": "corollary_10",
    "W-L11": "lemma_11",
    "W-L12": "lemma_12",
    "W-L13": "lemma_13",
}

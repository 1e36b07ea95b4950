"""Source W: Woodworth et al. 2020, kernel and rich regimes."""

STATEMENTS = {
    "W-T1": "theorem_1",
    "W-GA": "general_approach",
    "W-A": "asymptotics",
    "W-R": "explicit_regularizer",
    "W-F5": "figure_5",
    "W-C": "balance",
}

"""Source N: Notsawo et al. 2025, grokking beyond the Euclidean norm."""

STATEMENTS: dict[str, str] = {
    "N-GWU": "theorem_3_6",
    "N-F-mirage": "figure_4",
    "N-T21": "theorem_2_1",
    "N-PL": "contraction",
    "N-T31": "theorem_3_1",
    "N-T33": "theorem_3_3",
    "N-F-dominance": "figure_5",
    "N-F-scaling": "figure_6",
    "N-T34": "theorem_3_4",
    "N-T35": "theorem_3_5",
    "N-norm": "norms",
    "N-F-dominance-nuclear": "figure_5",
    "N-F-scaling-nuclear": "figure_6",
    "N-F-data": "data_selection",
    "N-F-depth": "depth",
}

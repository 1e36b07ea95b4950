"""Source N: Notsawo et al. 2025, grokking beyond the Euclidean norm."""

STATEMENTS: dict[str, str] = {
    "N-F1": "figure_1",
    "N-LU": "rescaling",
    "N-F2": "figure_2",
    "N-F3": "figure_3",
    "N-F-alg": "algorithmic_dataset",
    "N-F-ts": "teacher_student",
    "N-T21": "theorem_2_1",
    "N-PL": "contraction",
    "N-T31": "theorem_3_1",
    "N-T33": "theorem_3_3",
    "N-T34": "theorem_3_4",
    "N-T35": "theorem_3_5",
    "N-norm": "norms",
}

"""Source N: Notsawo et al. 2025, grokking beyond the Euclidean norm."""

STATEMENTS: dict[str, str] = {
    "N-F1": "figure_1",
    "N-LU": "rescaling",
    "N-F2": "figure_2",
    "N-F3": "figure_3",
    "N-NTK": "tangent_kernel",
    "N-NTK-t2": "tangent_kernel",
    "N-NTK-KKT": "tangent_kernel",
    "N-F-alg": "algorithmic_dataset",
    "N-F-ts": "teacher_student",
}

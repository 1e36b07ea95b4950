"""Source N: Notsawo et al. 2025, grokking beyond the Euclidean norm."""

from penchant.lab import Paper

paper = Paper(
    "N",
    package=__name__,
    title="Grokking Beyond the Euclidean Norm of Model Parameters",
    authors=("Pascal Jr. Tikeng Notsawo", "Guillaume Dumas", "Guillaume Rabusseau"),
    year=2025,
    form="blog post",
    statements={
        "N-F1": "figures.figure_1",
        "N-LU": "rescaling",
        "N-F2": "figures.figure_2",
        "N-F3": "figures.figure_3",
        "N-GWU": "theorem_3_6",
        "N-F-mirage": "figures.figure_4",
        "N-T21": "theorem_2_1",
        "N-PL": "contraction",
        "N-T31": "memorization",
        "N-T33": "theorem_3_3",
        "N-F-dominance": "figures.figure_5",
        "N-F-scaling": "figures.figure_6",
        "N-T34": "memorization",
        "N-T35": "theorem_3_3",
        "N-norm": "theorem_3_3",
        "N-F-dominance-nuclear": "figures.figure_5",
        "N-F-scaling-nuclear": "figures.figure_6",
        "N-F-data": "figures.data_selection",
        "N-F-depth": "figures.depth",
        "N-NTK": "tangent_kernel",
        "N-NTK-t2": "tangent_kernel",
        "N-NTK-KKT": "tangent_kernel",
        "N-F-alg": "figures.algorithmic_dataset",
        "N-F-ts": "figures.teacher_student",
    },
)

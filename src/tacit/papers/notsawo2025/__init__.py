"""Source N: Notsawo et al. 2025, grokking beyond the Euclidean norm."""

STATEMENTS: dict[str, str] = {
    "N-T21": "theorem_2_1",
    "N-PL": "contraction",
}

"""Source N: Notsawo et al. 2025, grokking beyond the Euclidean norm."""

STATEMENTS: dict[str, str] = {
    "N-LU": "rescaling",
}

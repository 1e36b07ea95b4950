"""Ours: theory beyond the sources, and phase diagrams that no paper has."""

STATEMENTS: dict[str, str] = {
    "beyond-apriori": "apriori",
    "beyond-clock": "clock",
    "beyond-saddles": "saddles",
    "beyond-sgd-grokking": "sgd_grokking",
}

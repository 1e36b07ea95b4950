"""Ours: theory beyond the sources, and phase diagrams that no paper has."""

STATEMENTS: dict[str, str] = {
    "beyond-clock": "clock",
    "beyond-greedy-rank": "greedy_rank",
    "beyond-saddles": "saddles",
}

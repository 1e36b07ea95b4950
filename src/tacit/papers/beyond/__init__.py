"""Ours: theory beyond the sources, and phase diagrams that no paper has."""

STATEMENTS: dict[str, str] = {
    "beyond-clock": "clock",
    "beyond-saddles": "saddles",
    "beyond-margins": "margins",
    "beyond-muon": "muon",
    "beyond-adam-batch": "adam_batch",
}

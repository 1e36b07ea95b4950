"""Source L: Lyu et al. 2023, early and late phase biases and grokking."""

STATEMENTS: dict[str, str] = {
    "L-A3": "wide_starts",
    "L-T1": "theorem_1",
    "L-T2": "theorem_2",
    "L-sharp": "sharpness",
    "L-F1": "grokking",
    "L-F2": "grokking",
    "L-table": "multiplication_table",
    "L-F3a": "table_completion",
    "L-F3b": "modular_addition",
    "L-sweep": "sweep",
    "L-no-decay": "no_decay",
    "L-clock": "clock",
    "L-forecast": "forecasts",
}

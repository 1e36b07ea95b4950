"""Source L: Lyu et al. 2023, early and late phase biases and grokking."""

STATEMENTS: dict[str, str] = {
    "L-T1": "theorem_1",
    "L-T2": "theorem_2",
    "L-sharp": "sharpness",
    "L-sweep": "sweep",
    "L-clock": "clock",
    "L-forecast": "forecasts",
}

"""Source L: Lyu et al. 2023, early and late phase biases and grokking."""

from penchant.lab import Paper

paper = Paper(
    "L",
    package=__name__,
    title="Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce Grokking",
    authors=("Kaifeng Lyu", "Jikai Jin", "Zhiyuan Li", "Simon S. Du", "Jason D. Lee", "Wei Hu"),
    year=2023,
    url="https://arxiv.org/abs/2311.18817",
    form="poster",
    statements={
        "L-A3": "wide_starts",
        "L-T1": "theorem_1",
        "L-T2": "theorem_2",
        "L-relu": "relu_nets",
        "L-sharp": "sharpness",
        "L-F1": "grokking",
        "L-F2": "grokking",
        "L-table": "multiplication_table",
        "L-F3a": "table_completion",
        "L-units": "quadratic_units",
        "L-F3b": "modular_addition",
        "L-sweep": "sweep",
        "L-no-decay": "no_decay",
        "L-clock": "clock",
        "L-forecast": "forecasts",
    },
)

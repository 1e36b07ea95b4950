"""Source W: Woodworth et al. 2020, kernel and rich regimes."""

STATEMENTS = {
    "W-T1": "theorem_1",
    "W-F5": "figure_5",
    "W-F6ab": "figure_6ab",
    "W-F6c": "figure_6c",
    "W-F6d": "figure_6d",
    "W-F7": "figure_7",
    "W-F8": "figure_8",
}

"""Whether the verdicts of tacit.watch are right, on runs of which the truth is known."""

STATEMENTS: dict[str, str] = {
    "watch-forecast": "forecasts",
    "watch-regime": "regimes",
}

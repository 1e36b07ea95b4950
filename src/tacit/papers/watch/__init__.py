"""Whether the verdicts of tacit.watch are right, on runs whose regime is known."""

STATEMENTS: dict[str, str] = {
    "watch-regime": "regimes",
}

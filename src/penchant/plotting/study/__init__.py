"""The picture of a gathered study: maps, curves, thresholds, small multiples."""

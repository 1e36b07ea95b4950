"""Pictures of datasets: their common style, and the drawings that several papers share."""

"""The report: one page and one JSON file that need nothing else."""

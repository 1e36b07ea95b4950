"""The report: one page and one JSON file that need nothing else."""

from tacit.report.page import page
from tacit.report.write import read_verdicts, refuse_unwritable, write_report

__all__ = ["page", "read_verdicts", "refuse_unwritable", "write_report"]

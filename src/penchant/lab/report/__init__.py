"""The report: one page and one JSON file that need nothing else."""

from penchant.lab.report.page import page
from penchant.lab.report.write import read_verdicts, refuse_unwritable, write_report

__all__ = ["page", "read_verdicts", "refuse_unwritable", "write_report"]

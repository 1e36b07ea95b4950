"""The laboratory: experiments, studies, evidence, verdicts, the record."""

from penchant.arguments import Array, integer, one_of
from penchant.door import door_as
from penchant.lab.evidence.chance import (
    DRAWS,
    RARE,
    drawn,
    exponents,
    lower_share,
    margin_of_mean,
    mean_within,
    share_at_least,
    upper_share,
)
from penchant.lab.evidence.evidence import (
    Check,
    Evidence,
    Premise,
    Status,
    at_least,
    at_most,
    below,
    within,
)
from penchant.lab.evidence.plot import Plot, Series, log_log
from penchant.lab.evidence.verdict import AS_PRINTED, Verdict, Verdicts
from penchant.lab.experiment import Experiment, Setting
from penchant.lab.paper import Paper, paper_of, papers
from penchant.lab.reading import read_study
from penchant.lab.record import Recorded, read_record
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies.compute import TRAJECTORY
from penchant.lab.studies.sizes import SIZES, Size, Sizes, sized
from penchant.lab.studies.study import Study
from penchant.lazy import Axes, DataArray, Dataset, Figure
from penchant.limits import Turns
from penchant.precision import double_precision
from penchant.records import Kind, Record

__all__ = [
    "AS_PRINTED",
    "DRAWS",
    "RARE",
    "SIZES",
    "TRAJECTORY",
    "Array",
    "Axes",
    "Check",
    "DataArray",
    "Dataset",
    "Evidence",
    "Experiment",
    "Figure",
    "Kind",
    "Paper",
    "Plot",
    "Premise",
    "Record",
    "Recorded",
    "Registry",
    "Series",
    "Setting",
    "Size",
    "Sizes",
    "Status",
    "Study",
    "Turns",
    "Verdict",
    "Verdicts",
    "all_claims",
    "at_least",
    "at_most",
    "below",
    "door_as",
    "double_precision",
    "drawn",
    "exponents",
    "integer",
    "log_log",
    "lower_share",
    "margin_of_mean",
    "mean_within",
    "one_of",
    "paper_of",
    "papers",
    "read_record",
    "read_study",
    "share_at_least",
    "sized",
    "upper_share",
    "within",
]

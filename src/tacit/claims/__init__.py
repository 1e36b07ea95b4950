"""Claims of the sources, each with premises, controls and a verdict that can go against it.

A claim is one decorated function::

    from tacit.claims import Check, Evidence, Size, claim

    @claim("W-T1", statement="the flow ends at argmin Q", place="section 4, Theorem 1")
    def theorem_1(size: Size) -> Evidence:
        distance = Check("distance to argmin Q", measured, tolerance=1e-6)
        return Evidence(
            ran="20 problems, flow in the parameters",
            checks=[distance],
            premises={"the flow interpolates": (residual < 1e-9, residual)},
            controls={"argmin l2 in place of argmin Q": distance_to_l2},
        )
"""

from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence, Premise
from tacit.evidence.plot import Plot, Series
from tacit.evidence.verdict import Verdict, Verdicts
from tacit.studies.sizes import Size

__all__ = [
    "Check",
    "Evidence",
    "Plot",
    "Premise",
    "Series",
    "Size",
    "Verdict",
    "Verdicts",
    "claim",
]

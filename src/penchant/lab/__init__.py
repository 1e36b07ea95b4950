"""The laboratory: experiments, studies, evidence, verdicts, the record."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)

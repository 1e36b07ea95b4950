"""The laboratory: experiments with their studies, checks and verdicts; the record; the report."""

"""Source M: Moroshko et al. 2020, initialization scale against training accuracy."""

STATEMENTS: dict[str, str] = {}

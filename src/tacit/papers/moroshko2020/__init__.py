"""Source M: Moroshko et al. 2020, initialization scale against training accuracy."""

STATEMENTS = {
    "M-L3": "lemma_3",
    "M-L10": "lemma_10",
    "M-L11": "lemma_11",
    "M-L12": "lemma_12",
    "M-L13": "lemma_13",
    "M-I": "inequalities",
}

"""Source M: Moroshko et al. 2020, initialization scale against training accuracy."""

STATEMENTS = {
    "M-T1": "theorem_1",
    "M-T2": "theorem_2",
    "M-L3": "lemma_3",
    "M-T4": "theorem_4",
    "M-C5": "condition_5",
    "M-T6": "theorem_6",
    "M-T7": "theorem_7",
    "M-depth": "role_of_depth",
    "M-L10": "lemma_10",
    "M-L11": "lemma_11",
    "M-L12": "lemma_12",
    "M-L13": "lemma_13",
    "M-I": "inequalities",
    "M-num": "numbers",
    "M-open": "open_question",
}

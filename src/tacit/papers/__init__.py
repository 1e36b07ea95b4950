"""The sources, a folder each: one file per statement or figure, with its cells, check and picture.

    experiment = Experiment("W-L13", statement=..., place=..., study=study, check=check, draw=draw)

`study` says which cells there are at which size (tacit.studies.sizes), `check` and `draw` read
the dataset that the study gives and nothing else. A paper's `__init__` lists its files in the
order of the source: `STATEMENTS = {"W-L13": "lemmas.lemma_13", ...}`.
"""

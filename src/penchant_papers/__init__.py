"""The claims of papers, a folder each: one file a statement or figure.

    experiment = Experiment("W-L13", statement=..., place=..., study=study, check=check, draw=draw)

`study` says which cells there are at which size, `check` and `draw` read the dataset that the
study gives and nothing else. The `__init__` of a folder describes its paper and lists its files in
the order of the source; `papers` lists the folders, for the entry point of the distribution.
"""

"""Studies: a description, its cells on disk, engines that compute them, one file that gathers them.

    study = read_study("scale.toml")            # reading, study, axes, parts, checks
    dataset = run_study(study, "tacit-studies", engine="processes")

A study is a grid of cells (cells), at several sizes if one likes (sizes, forms). A cell's name is a
hash of its full description and of the version of the code (code/); the worker that computed it
writes it under that name, in one step (compute, storage/). Engines compute what is missing
(engines/). The finished study is one labelled dataset, whose layout is described in
tacit.studies.gather, in OUT/NAME.nc. Adaptive studies choose cells in rounds (adaptive/).
`tacit run --dry` looks ahead (estimate).

Running a study runs the code that it names: `function = "package.module:function"` is imported
and called, as a script would be, if the reader trusts it; tables with `is` reach the public names
of tacit that compute, and no others. Reading cells or the gathered file never runs anything: they
are text, numbers and HDF5, no pickles.
"""

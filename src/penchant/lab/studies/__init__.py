"""Studies: a description, cells on disk, engines that compute them, and one result file.

    study = read_study("scale.toml")            # reading, study, axes, parts, checks
    dataset = run(study, "penchant-studies", engine="processes")

A study is a grid of cells (cells), optionally at several sizes (sizes). A cell's name is a hash of
its full description and of the version of the code (code/). The worker that computes a cell writes
it under that name, in one step (compute, storage/). Engines compute the missing cells (engines/).
The finished study is one labelled dataset in OUT/NAME.nc; penchant.lab.studies.gather describes its
layout. Adaptive studies choose their cells in rounds (adaptive/). `penchant run --dry` estimates
time and disk space (estimate).

Running a study runs the code that it names: `function = "package.module:function"` is imported
and called, like a script, if the user trusts it. A table with `is` can only name public functions
and classes of penchant that compute. Reading cells or the gathered file never runs code: these
files hold text, numbers and HDF5, not pickles.
"""

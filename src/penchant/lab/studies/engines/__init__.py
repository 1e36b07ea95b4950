"""Engines that compute cells: this process, other local processes, a dask cluster, SLURM."""

"""Who computes cells: this process, processes beside it, a dask cluster, SLURM."""

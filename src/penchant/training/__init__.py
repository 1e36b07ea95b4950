"""Training: one verb for every model, problem and method, and the path it leaves behind."""

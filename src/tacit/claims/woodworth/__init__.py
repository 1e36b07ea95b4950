"""Source woodworth: what is not an experiment yet."""

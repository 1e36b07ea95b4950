"""Source notsawo: what is not an experiment yet."""

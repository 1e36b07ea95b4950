"""What is said about a run before it ends: where it will end, when it will generalize."""

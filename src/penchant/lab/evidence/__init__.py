"""What a claim must show: checks, premises, controls, and the verdict that follows from them."""

"""Token nets on pairs of tokens, as step-by-step methods see them."""

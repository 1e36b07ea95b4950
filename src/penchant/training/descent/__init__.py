"""Step-by-step methods: update rules, and the compiled driver that runs all of them."""

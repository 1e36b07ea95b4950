"""What is to be learned: arrays and the truth behind them."""

"""A child process that can be interrupted, wherever the suite runs."""

# a suite started in the background ignores Ctrl-C, and so would the child; to mend it before the
# child starts would take a fork, which JAX's threads forbid
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "

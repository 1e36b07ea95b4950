"""`python -m penchant`, the same as the command `penchant`."""

from penchant.cli import app

if __name__ == "__main__":
    app(prog_name="penchant")

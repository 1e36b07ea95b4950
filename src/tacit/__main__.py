"""`python -m tacit`, the same as the command `tacit`."""

from tacit.cli import app

if __name__ == "__main__":
    app(prog_name="tacit")

"""A `penchant` command run in this process."""

from typer.testing import CliRunner

from penchant.cli import app


def penchant_command(*words, **environment):
    """(exit code, everything printed) of one command; an error that is not told raises."""
    result = CliRunner().invoke(app, [str(word) for word in words], env=environment)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output

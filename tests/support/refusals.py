"""Wrong input is refused with a ValueError of one sentence."""

import pytest


def refused(call, sentence=None):
    """The one line that the call is refused with; it matches the pattern `sentence`."""
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


def refused_with(call, *fragments):
    """The call is refused with a short line that contains every fragment."""
    message = refused(call)
    assert len(message) < 240
    for fragment in fragments:
        assert fragment in message, message


def refusals(*cases, by=""):
    """A test of pairs: a call, and a pattern of the sentence that it is refused with.

    Every sentence begins with `by`, the name of what complains.
    """

    @pytest.mark.parametrize(("call", "sentence"), cases)
    def test(call, sentence):
        assert refused(call, sentence).startswith(by)

    return test

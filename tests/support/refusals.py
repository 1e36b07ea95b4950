"""Wrong input is refused with a ValueError of one sentence."""

import pytest


def refusals(*cases):
    """A test of pairs: a call, and a pattern of the sentence that it is refused with."""

    @pytest.mark.parametrize(("call", "sentence"), cases)
    def test(call, sentence):
        with pytest.raises(ValueError, match=sentence) as refused:
            call()
        assert "\n" not in str(refused.value)

    return test

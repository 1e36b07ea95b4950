"""The page of `penchant explore`: sliders for the theory, a saved study, claims and verdicts.

A view is a pure function from the values of its controls to plain arrays (`picture.py`). Bokeh only
draws them (`document.py`). `gate.py` checks everything that a browser sends.
"""

"""
Attention separates tokens by the largest margin
================================================

One layer of attention on forty sets of tokens. Training W ends at the best Frobenius margin between
the tokens it selects and all others, training K and Q at the best nuclear margin of K Q^T.
"""

import sys

import penchant
from penchant.plotting import CYCLE, GREY, sheet, styled

NORMS = penchant.L2(squared=False), penchant.regularizers.Nuclear((5, 5))


def shares(seed, factored, rate):
    """The margin of a trained W as a share of the best in each norm."""
    data = penchant.problems.token_selection(samples=4, tokens=3, dimension=5, seed=seed)
    net = penchant.models.attention(data.head, factored=factored, seed=seed)
    method = penchant.methods.SteepestDescent(rate, penchant.L2())
    path = penchant.train(net, data.training, method, stop=penchant.Steps(2000))
    W = net.function.matrix(path.parameters).ravel()
    rows = data.separation(data.selected(W))
    least = (rows.X @ W).min()
    return [least * penchant.max_margin(rows, norm).value / norm(W) for norm in NORMS]


with styled():
    title = "Attention separates the tokens that it selects by the largest margin"
    picture, (panel,) = sheet(title, widths=(6.4,), height=4.6)
    trained = ("W trained", False, 0.05, "o"), ("K and Q trained, $W = K Q^T$", True, 0.006, "^")
    for colour, (label, factored, rate, mark) in zip(CYCLE, trained, strict=False):
        ends = zip(*(shares(seed, factored, rate) for seed in range(40)), strict=True)
        panel.plot(*ends, mark, color=colour, label=label, alpha=0.8)
    for line in (panel.axvline, panel.axhline):
        line(1.0, color=GREY, linewidth=1)
    panel.set_xlabel("share of the best Frobenius margin")
    panel.set_ylabel("share of the best nuclear margin")
    panel.legend(loc="lower left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "attention_margins.png")

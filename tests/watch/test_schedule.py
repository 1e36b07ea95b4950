"""The record covers the run whatever the budget: looks that did not fit are taken from copies."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.watch import postponed
from penchant.watch.postponed import Postponed, PostponedLooks
from penchant.watch.schedule import HEAD, Budget

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 5))


def net(w, x):
    return (x @ w["inner"]) ** 2 @ w["outer"]


def start():
    rng = np.random.default_rng(1)
    return {"inner": rng.standard_normal((5, 8)), "outer": rng.standard_normal((8, 2))}


def trained(budget, steps=300):
    """A watch of a JAX net whose weights move along a line."""
    w, along = start(), np.random.default_rng(2).standard_normal((5, 8))
    watch = penchant.watch(net, X, parameters=w, budget=budget, raise_errors=True)
    for step in range(1, steps + 1):
        now = {"inner": w["inner"] + 0.004 * step * along, "outer": w["outer"] * (1 - 1e-3 * step)}
        watch(step, now, train_loss=1 / step)
    return watch


def torch_trained(budget, steps=300):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.LayerNorm(8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    x = torch.as_tensor(X, dtype=torch.float32)
    options = {"optimizer": optimizer, "budget": budget, "raise_errors": True}
    watch = penchant.watch(module, x, **options)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        (module(x) - 1).square().mean().backward()
        optimizer.step()
        watch(step)
    return watch


@pytest.mark.parametrize("run", [trained, torch_trained])
def test_a_look_from_a_copy_is_the_look_of_its_step(run):
    whole, late = run(None), run(1e-9)
    assert len(late.log.rows) == 1
    late.look()
    table, steps = whole.dataset, late.dataset.step.values
    assert len(steps) == postponed.MOST + 2
    same = table.isel(time=np.isin(table.step.values, steps))
    assert same.sizes["time"] >= postponed.MOST + 1  # the last step is outside of the schedule
    for name, values in late.dataset.data_vars.items():
        if values.dims[:1] == ("time",) and not name.startswith(("look_", "forecast_")):
            mine = values.isel(time=np.isin(steps, same.step.values))
            np.testing.assert_allclose(mine, same[name], rtol=1e-5, atol=1e-7, err_msg=name)
    assert not late.postponed.copies
    late.look()  # and they are taken once
    assert late.dataset.step.values.tolist() == steps.tolist()


def test_the_model_is_live_again_after_looks_from_copies():
    torch = pytest.importorskip("torch")
    watch = torch_trained(1e-9)
    live = {n: p.detach().clone() for n, p in watch.backend.function.module.named_parameters()}
    watch.look()
    arrays = watch.backend.arrays()
    assert all(torch.equal(torch.as_tensor(arrays[n]), value) for n, value in live.items())


@given(steps=st.sets(st.integers(1, 10**6), min_size=1, max_size=80), looked=st.booleans())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_copies_cover_the_run(steps, looked):
    """They are few, the latest is among them, and no thinner than every second due step."""
    held, known = PostponedLooks(0, 8, 100), [0.0, 5.0] if looked else [0.0]
    for step in sorted(steps):
        held.keep(Postponed(step, {}, {}), known)
    taken = [copy.step for copy in held.copies]
    assert len(taken) == min(len(steps), postponed.MOST)
    assert taken == sorted(taken)
    assert taken[-1] == max(steps)
    if len(steps) <= postponed.MOST:
        assert set(taken) == steps
        return
    kept, every = (np.diff(np.log10([0.5, *part])) for part in (taken, sorted(steps)))
    if not looked:  # no gap exceeds what a removal of the closest neighbours can open
        whole = np.log10(max(steps)) - np.log10(0.5)
        assert kept.max() <= max(every.max(), 2 * whole / (postponed.MOST - 1)) * 2


def test_too_large_a_model_is_not_copied(caplog):
    assert PostponedLooks(0, 8, postponed.ROOM + 1).most == 0
    assert PostponedLooks(0, 8, postponed.ROOM // 3).most == 3
    watch = trained(1e-9, steps=0)
    watch.postponed.most = 0
    watch(1, start())
    assert not watch.postponed.copies
    assert "too many to be copied" in caplog.text


def test_the_first_look_that_does_not_fit_is_said_once(caplog):
    with caplog.at_level(logging.WARNING, "penchant.watch"):
        watch = trained(1e-9)
    (said,) = caplog.messages
    assert "the look due at step 1 did not fit into the budget" in said
    needed = float(said.split("budget=")[2].split()[0])
    assert sum(said.endswith(note) for note in watch.dataset.attrs["notes"]) == 1
    assert needed * HEAD >= watch.budget.expected("look")  # with that number there is room
    caplog.clear()
    assert trained(None).dataset.attrs["notes"] == []
    assert not caplog.messages


def test_a_short_loop_has_the_looks_of_ten_seconds():
    """And a longer one the share: twelve looks of 10 ms fit at once, and none of a second."""
    for cost, count in ((0.01, 12), (1.0, 0)):
        now = [0.0]
        budget = Budget(0.035, lambda: now[0])  # noqa: B023
        with budget.charged("look"):
            now[0] += cost
        budget.restart()
        taken = 0
        while budget.allows("look"):
            with budget.charged("look"):
                now[0] += cost
            taken += 1
        assert taken >= count
        assert (taken > 0) == (count > 0)
        assert budget.spent <= 0.035 * HEAD


def test_the_regime_looks_again_when_its_look_is_old():
    watch = trained(1e-9)
    assert watch.dataset.step.values.tolist() == [0]
    first = watch.regime
    assert first.step == 300
    assert watch.regime == first
    w = start()
    watch(310, w)
    assert watch.regime.step == 300  # no look was due since
    watch(400, w)
    assert watch.regime.step == 400
    assert watch.dataset.attrs["asked_seconds"] > 0
    assert not [row for row in watch.log.rows if row["step"] == 310]

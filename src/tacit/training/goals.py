"""Whether a run has come to where its rules stop it, and what to say then."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from tacit.records import Kind, Outcome
from tacit.training import stop as stopping
from tacit.training.task import Moment, Task


class Goals:
    """The rules of one run of a step-by-step method.

    A level of the loss, a direction and a time are `located`: where a look finds one of them
    passed, the step at which that happened is sought. Other goals hold at the looks.
    """

    def __init__(
        self,
        who: str,
        task: Task,
        rules: Sequence[stopping.Stop],
        recorded: Collection[str],
        located: bool,
        steady: bool,
    ) -> None:
        self.task, self.seeks = task, located
        self.goals = [rule for rule in rules if not rule.budget]
        unit = task.log_unit()
        levels = {rule: rule.log_level(who, task.model, unit) for rule in self.goals}
        self.levels = {rule: level for rule, level in levels.items() if level > -math.inf}
        self.near = [rule for rule in self.goals if rule.directional]
        self.others = [r for r in self.goals if r not in self.levels and not r.directional]
        for rule in self.others:
            if missing := [name for name in rule.levels if name not in recorded]:
                raise ValueError(
                    f"{who}: {type(rule).__name__} looks at {missing[0]}, which is not recorded "
                    f"here; there are {', '.join(recorded)}"
                )
        if self.near and not task.linear:
            raise ValueError(
                f"{who}: Near needs a linear predictor, which {type(task.model).__name__} has not"
            )
        time = stopping.first(rules, stopping.Time)
        self.log_t = math.inf if time is None or steady else math.log(time.t)
        self.sought = bool(self.levels or self.near) or self.log_t < math.inf
        self.any = bool(self.goals) or self.log_t < math.inf

    def located(self, moment: Moment, numbers: Mapping[str, float]) -> bool:
        """Whether a rule is met whose step can be found between two looks."""
        return self.seeks and self._passed(moment, numbers) is not None

    def _passed(self, moment: Moment, numbers: Mapping[str, float]) -> str | None:
        for rule, level in self.levels.items():
            if numbers["log_loss"] <= level:
                return f"came to {rule}"
        for rule in self.near:
            if rule.gap(self.task.predictor(moment.parameters)) <= 0:
                return f"came to {rule}"
        if moment.log_t >= self.log_t:
            return f"took all of t = {math.exp(moment.log_t):.6g}"
        return None

    def met(self, moment: Moment, numbers: Mapping[str, float]) -> Outcome | None:
        """The outcome if a goal is met, or the time of a method of variable steps is over."""
        reached = [words for rule in self.others if (words := rule.met(numbers)) is not None]
        found = f"came to {reached[-1]}" if reached else self._passed(moment, numbers)
        if found is None:
            return None
        if self.goals and found.startswith("took"):
            return self.ended(moment, numbers)
        loss = f"log loss {numbers['log_loss']:.6g}"
        return Outcome(Kind.SOLVED, f"{found} after {moment.step} steps with {loss}")

    def ended(self, moment: Moment, numbers: Mapping[str, float]) -> Outcome:
        """What to say at the end of a budget."""
        loss = f"loss {numbers['loss']:.3g}"
        if not numbers["loss"] > 0:
            loss = f"log loss {numbers['log_loss']:.6g}"
        if not self.goals:
            return Outcome(Kind.SOLVED, f"took all {moment.step} steps, {loss}")
        short = []
        for rule in self.goals:
            if rule in self.levels:
                short.append(f"{loss} above {rule}")
            elif rule.directional:
                gap = rule.gap(self.task.predictor(moment.parameters))
                short.append(f"{gap:.4g} degrees outside {rule}")
            else:
                short.append(str(rule.missed(numbers)))
        sentence = f"{moment.step} steps ended at {' and '.join(short)}; give more of them"
        return Outcome(Kind.BUDGET_SPENT, sentence)

"""The loss on the probe inputs with its gradients and Hessian products, in torch and JAX."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.lazy import jax, jnp, torch
from penchant.measures.torch.gradients import as_numbers
from penchant.watch.backends.backend import Backend
from penchant.watch.measures import Labels

Rows = NDArray[np.int64]
Product = Callable[[Array], Array]


class ProbeLosses(Protocol):
    """The mean loss of the probe inputs, or of some `rows`, in flat vectors of all parameters."""

    name: str
    count: int

    def gradients(self, parameters: Any, batches: Iterable[Rows]) -> Iterator[Array]:
        """The gradients of batches, given by their rows."""

    def curvature(
        self, parameters: Any, rows: Rows | None = None
    ) -> contextlib.AbstractContextManager[Product]:
        """A context with the product of the Hessian and a vector."""


def losses_of(
    backend: Backend, labels: Labels | None, given: Any, loss: Callable[..., Any] | None
) -> ProbeLosses:
    """The losses of a model: `loss` of outputs and the `given` labels, or by the kind of labels."""
    if loss is None and labels is None:
        raise Invalid(
            "edge and noise need a loss: give labels=, or a function of the outputs as loss="
        )
    if loss is None and backend.projected:
        raise Invalid(
            "the outputs are replaced by random sums, which have no loss; give loss=, a function "
            "of what the model returns"
        )
    kind = TorchLosses if hasattr(backend, "function") else JaxLosses
    return kind(backend, labels, given, loss)


def _name(labels: Labels | None, loss: Any) -> str:
    if loss is not None:
        return f"given loss ({getattr(loss, '__name__', type(loss).__name__)})"
    return "mean cross-entropy" if labels and labels.classes is not None else "mean squared error"


class TorchLosses:
    """The loss of a torch module on its probe inputs, in eval mode."""

    def __init__(self, backend: Any, labels: Labels | None, given: Any, loss: Any):
        self.function, self.x, self.loss = backend.function, backend.x, loss
        self.count, self.name = len(backend.x), _name(labels, loss)
        device = next(iter(self.function.parameters().values())).device
        if loss is not None:
            self.targets = None if given is None else torch.as_tensor(given).to(device)
        elif labels is not None and labels.classes is not None:
            self.targets = torch.as_tensor(labels.classes).to(device)
        elif labels is not None:
            self.targets = torch.as_tensor(labels.values).to(device)

    def gradients(self, parameters: Any, batches: Iterable[Rows]) -> Iterator[Array]:
        with self.function.quiet():
            for rows in batches:
                leaves, value = self._value(rows)
                yield _vector(torch.autograd.grad(value, leaves, materialize_grads=True))

    @contextlib.contextmanager
    def curvature(self, parameters: Any, rows: Rows | None = None) -> Iterator[Product]:
        with self.function.quiet():
            leaves, value = self._value(rows)
            slopes = torch.autograd.grad(value, leaves, create_graph=True, materialize_grads=True)
            curved = [part for part in slopes if part.requires_grad]

            def product(vector: Array) -> Array:
                if not curved:
                    return np.zeros_like(vector)
                parts = _parts(vector, slopes)
                along = [p for p, slope in zip(parts, slopes, strict=True) if slope.requires_grad]
                return _vector(
                    torch.autograd.grad(
                        curved, leaves, along, retain_graph=True, materialize_grads=True
                    )
                )

            yield product

    def _value(self, rows: Rows | None) -> tuple[list[Any], Any]:
        """Parameters that have gradients, and the loss at them."""
        chosen = slice(None) if rows is None else torch.as_tensor(rows, device=self.x.device)
        params = {n: v.clone().requires_grad_() for n, v in self.function.parameters().items()}
        targets = None if self.targets is None else self.targets[chosen]
        answer = self.function.run(params, self.function.copies(), self.x[chosen])
        return list(params.values()), self._loss(answer, targets)

    def _loss(self, answer: Any, targets: Any) -> Any:
        output = self.function.output
        if self.loss is not None:
            outputs = output.pick(answer)
            value = self.loss(outputs) if targets is None else self.loss(outputs, targets)
            if getattr(value, "ndim", None) != 0 or not value.requires_grad:
                raise Invalid("loss must return one number that depends on the outputs")
            return value
        outputs = output(answer)
        if targets.ndim == 1:
            return torch.nn.functional.cross_entropy(outputs, targets)
        outputs = outputs.reshape(len(targets), -1)
        return torch.nn.functional.mse_loss(outputs, targets.to(outputs.dtype))


def _vector(parts: Any) -> Array:
    flat = [part.to_dense() if part.is_sparse else part for part in parts]
    return np.asarray(as_numbers(torch.cat([part.detach().reshape(-1) for part in flat])))


def _parts(vector: Array, like: Any) -> list[Any]:
    pieces = torch.as_tensor(vector).split([part.numel() for part in like])
    return [piece.view_as(part).to(part) for piece, part in zip(pieces, like, strict=True)]


class JaxLosses:
    """The loss of a JAX function on its probe inputs, compiled at the first use."""

    def __init__(self, backend: Any, labels: Labels | None, given: Any, loss: Any):
        self.backend, self.loss = backend, loss
        self.count, self.name = len(backend.x), _name(labels, loss)
        if loss is not None:
            self.targets = None if given is None else np.asarray(given)
        elif labels is not None:
            by_class = labels.classes is not None
            self.targets = labels.classes if by_class else labels.values
        self._slope = jax.jit(lambda leaves, rows: jax.grad(self._value)(leaves, rows))
        self._product = jax.jit(
            lambda leaves, rows, along: jax.jvp(
                lambda leaves: jax.grad(self._value)(leaves, rows), (leaves,), (along,)
            )[1]
        )

    def gradients(self, parameters: Any, batches: Iterable[Rows]) -> Iterator[Array]:
        with self.backend._precision():
            for rows in batches:
                yield _joined(self._slope(self.backend._trained(parameters), self._rows(rows)))

    @contextlib.contextmanager
    def curvature(self, parameters: Any, rows: Rows | None = None) -> Iterator[Product]:
        leaves, chosen = self.backend._trained(parameters), self._rows(rows)
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

        def product(vector: Array) -> Array:
            pieces = zip(np.split(vector, ends), leaves, strict=True)
            along = [np.asarray(p, leaf.dtype).reshape(leaf.shape) for p, leaf in pieces]
            with self.backend._precision():
                return _joined(self._product(leaves, chosen, along))

        yield product

    def _rows(self, rows: Rows | None) -> Any:
        return np.arange(self.count) if rows is None else np.asarray(rows)

    def _value(self, leaves: Any, rows: Any) -> Any:
        outputs = self.backend._run(leaves)[rows]  # of all rows, which is simple, not cheap
        targets = None if self.targets is None else jnp.asarray(self.targets)[rows]
        if self.loss is not None:
            return self.loss(outputs) if targets is None else self.loss(outputs, targets)
        assert targets is not None
        if targets.ndim == 1:
            logs = jax.nn.log_softmax(outputs)
            return -jnp.take_along_axis(logs, targets[:, None], 1).mean()
        return jnp.mean((outputs.reshape(len(rows), -1) - targets) ** 2)


def _joined(leaves: Any) -> Array:
    return np.concatenate([np.asarray(leaf).reshape(-1) for leaf in leaves])

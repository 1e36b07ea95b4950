"""A torch module in eval mode with a fixed random state, restored afterwards."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from penchant.lazy import torch

GRADIENT_HOOK = "make_inputs_require_grads"


@contextlib.contextmanager
def quiet(module: Any, device: Any, training: bool = False) -> Iterator[None]:
    """Eval mode, or the module's own mode; flags, modes and random states are restored."""
    switched = [] if training else [part for part in module.modules() if part.training]
    places = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices=places),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device.type, enabled=False),
        differentiable(),
        _no_gradient_hooks(module),
        _same_attributes(module),
    ):
        try:
            for part in switched:
                part.training = False
            yield
        finally:
            for part in switched:
                part.training = True


@contextlib.contextmanager
def differentiable() -> Iterator[None]:
    """Without shortcuts of torch that lack derivatives, and without its warnings."""
    fast = torch.backends.mha.get_fastpath_enabled()
    with plain_attention(), _not_compiled(), _no_checkpoints(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those on batching rules
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def _same_attributes(module: Any) -> Iterator[None]:
    """Put back the tensors that modules hold as attributes.

    Old weight norms, pruning and caches set them in every forward pass, and those of torch.func
    cannot be used after it.
    """
    before, tensor = [(part, dict(vars(part))) for part in module.modules()], torch.Tensor
    try:
        yield
    finally:
        for part, old in before:
            now = vars(part)
            for name in [name for name, value in now.items() if isinstance(value, tensor)]:
                if name not in old:
                    del now[name]
                elif now[name] is not old[name]:
                    now[name] = old[name]


def plain_attention() -> contextlib.AbstractContextManager[Any]:
    """Attention by its formula: the fused kernels have no second or forward derivatives."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # torch before 2.3
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.MATH)


def _not_compiled() -> contextlib.AbstractContextManager[Any]:
    """Run compiled modules as they are written: the compiler does not know torch.func's tensors."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and its import takes a second
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


class _Plain:
    """Replaces CheckpointFunction."""

    @staticmethod
    def apply(function: Any, preserve: bool, *args: Any) -> Any:
        return function(*args)


def _once(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Replaces the generator that runs before and after a checkpointed function."""
    yield


@contextlib.contextmanager
def _no_checkpoints() -> Iterator[None]:
    """Make torch.utils.checkpoint only call its function.

    Its second pass, during the backward one, would run with other parameters than the first, and
    torch.func does not allow its hooks.
    """
    library = torch.utils.checkpoint
    plain = {"CheckpointFunction": _Plain, "_checkpoint_without_reentrant_generator": _once}
    old = {name: getattr(library, name) for name in plain if hasattr(library, name)}
    try:
        for name in old:
            setattr(library, name, plain[name])
        yield
    finally:
        for name, value in old.items():
            setattr(library, name, value)


@contextlib.contextmanager
def _no_gradient_hooks(module: Any) -> Iterator[None]:
    """Disable the hook of Transformers that calls requires_grad_, which torch.func does not allow.

    Gradient checkpointing sets it on embeddings; here the parameters have gradients anyway.
    """
    hooked = [(part, dict(part._forward_hooks)) for part in module.modules()]
    affected = [
        (part, hooks)
        for part, hooks in hooked
        if any(getattr(hook, "__name__", "") == GRADIENT_HOOK for hook in hooks.values())
    ]
    try:
        for part, hooks in affected:
            for key, hook in hooks.items():
                if getattr(hook, "__name__", "") == GRADIENT_HOOK:
                    del part._forward_hooks[key]
        yield
    finally:
        for part, hooks in affected:
            part._forward_hooks.clear()
            part._forward_hooks.update(hooks)

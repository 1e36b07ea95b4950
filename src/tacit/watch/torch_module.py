"""A live torch module as a function of its trained parameters, run without leaving a trace."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from tacit.watch.backend import WHO


class TorchFunction:
    """f(params, x) of `module` in eval mode, where `params` are its trained parameters by name.

    Parameters without requires_grad and buffers are constants; buffers are handed over as copies.
    Shared parameters have one name and stay shared. The module's forward hooks are run.
    """

    def __init__(self, module: Any):
        self.module = _unwrapped(module)
        self.names = tuple(self.parameters())
        if not self.names:
            raise ValueError(
                f"{WHO}: no parameter of the model requires gradients, so nothing is trained; "
                "call requires_grad_(True) on those that are"
            )

    def parameters(self) -> dict[str, Any]:
        """The live trained parameters, detached: they follow the training."""
        import torch

        named = dict(self.module.named_parameters())
        for name, value in named.items():
            if isinstance(value, torch.nn.parameter.UninitializedParameter):
                raise ValueError(
                    f"{WHO}: parameter {name} has no shape yet; run the model once before"
                )
            if value.is_meta:
                raise ValueError(
                    f"{WHO}: parameter {name} has no numbers (device meta); load the model first"
                )
        return {name: value.detach() for name, value in named.items() if value.requires_grad}

    def __call__(self, params: dict[str, Any], x: Any) -> Any:
        import torch

        buffers = {name: value.clone() for name, value in self.module.named_buffers()}
        # a copy of x, since the first operation may work in place
        return torch.func.functional_call(self.module, (params, buffers), (x.clone(),))

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Eval mode with fixed random state; flags, modes and random states are put back."""
        import torch

        training = [module for module in self.module.modules() if module.training]
        device = next(iter(self.parameters().values())).device
        places = [device] if device.type == "cuda" else []
        fast = torch.backends.mha.get_fastpath_enabled()
        with (
            torch.random.fork_rng(devices=places),
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast(device.type, enabled=False),
            _plain_attention(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # torch on its own inside, such as batching rules
            try:
                torch.backends.mha.set_fastpath_enabled(False)  # it has no derivatives
                for module in training:
                    module.training = False
                yield
            finally:
                torch.backends.mha.set_fastpath_enabled(fast)
                for module in training:
                    module.training = True

    def dropouts(self) -> list[str]:
        """Names of the dropout layers that would be active in training."""
        import torch

        kind = torch.nn.modules.dropout._DropoutNd
        named = self.module.named_modules()
        return [name for name, module in named if isinstance(module, kind) and module.p > 0]


def _plain_attention() -> contextlib.AbstractContextManager[Any]:
    """Attention by its formula: the fused kernels have no second or forward derivatives."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # torch before 2.3
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.MATH)


def _unwrapped(module: Any) -> Any:
    """The module inside torch.compile and data parallelism, whose parameters are the same."""
    import torch

    while True:
        if isinstance(getattr(module, "_orig_mod", None), torch.nn.Module):
            module = module._orig_mod
        elif isinstance(module, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
            module = module.module
        else:
            return module

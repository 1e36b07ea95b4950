"""A live torch module as a function of its trained parameters, run without leaving a trace."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any


class TorchFunction:
    """f(params, x) of `module` in eval mode, where `params` are its trained parameters by name.

    Parameters without requires_grad and buffers are constants; buffers are handed over as copies.
    Shared parameters have one name and stay shared. The module's forward hooks are run. With
    `dtype` all of it is computed in that precision, whatever the module's own is, and the constants
    are those of the beginning.
    """

    def __init__(self, who: str, module: Any, dtype: Any = None):
        self.who, self.module, self.dtype = who, _unwrapped(module), dtype
        self.names = tuple(self.parameters())
        if not self.names:
            raise ValueError(
                f"{who}: no parameter of the model requires gradients, so nothing is trained; "
                "call requires_grad_(True) on those that are"
            )
        self.constants = None if dtype is None else self._constants()

    def parameters(self) -> dict[str, Any]:
        """The live trained parameters, detached: they follow the training."""
        import torch

        named = dict(self.module.named_parameters())
        for name, value in named.items():
            if isinstance(value, torch.nn.parameter.UninitializedParameter):
                raise ValueError(
                    f"{self.who}: parameter {name} has no shape yet; run the model once before"
                )
            if value.is_meta:
                raise ValueError(
                    f"{self.who}: parameter {name} has no numbers (device meta); load the model "
                    "first"
                )
        trained = {name: value for name, value in named.items() if value.requires_grad}
        return {name: self._cast(value.detach()) for name, value in trained.items()}

    def given(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The trained parameters among `params` (such as a state_dict), as the module has them."""
        import torch

        found = {}
        for name, value in self.parameters().items():
            if name not in params:
                raise ValueError(f"{self.who}: params must hold all trained parameters; no {name}")
            array = torch.as_tensor(params[name]).detach().to(value.device, value.dtype)
            if array.shape != value.shape:
                raise ValueError(
                    f"{self.who}: parameter {name} must have the shape {tuple(value.shape)}, "
                    f"got {tuple(array.shape)}"
                )
            found[name] = array.clone()
        return found

    def __call__(self, params: dict[str, Any], x: Any) -> Any:
        import torch

        live = dict(self.module.named_buffers())
        held = live if self.constants is None else self.constants
        constants = {name: value.clone() for name, value in held.items()}
        # a copy of x, since the first operation may work in place
        return torch.func.functional_call(self.module, (params, constants), (x.clone(),))

    def _constants(self) -> dict[str, Any]:
        named = dict(self.module.named_buffers())
        named |= {n: p for n, p in self.module.named_parameters() if not p.requires_grad}
        return {name: self._cast(value.detach().clone()) for name, value in named.items()}

    def _cast(self, value: Any) -> Any:
        real = self.dtype is not None and value.is_floating_point()
        return value.to(self.dtype) if real else value

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

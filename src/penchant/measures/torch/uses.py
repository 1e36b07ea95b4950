"""How operations of torch use a parameter, and its gradient from their inputs and derivatives.

The gradient of one sample is sum_t delta_t h_t^T in the weight of a matrix product, sum_t delta_t *
h_t in a weight that scales, the sum of the delta_t of its tokens in a row of an embedding, and
sum_t delta_t in a bias. Here h is the input of the operation and delta the derivative in its
output. In a value that acts entry by entry (positions, scales, class tokens) it is the derivative
in a copy for this sample.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from penchant.measures.kernels.factors import Use

Arguments = dict[str, Any]


class SampleLayout(NamedTuple):
    """The place of the samples in the output of an operation: `times` vectors each along `axis`.

    If the axis holds several vectors per sample, the sample is the outer index, or with `inner`
    the inner one.
    """

    axis: int
    times: int = 1
    inner: bool = False

    def split(self, tensor: Any, samples: int) -> Any:
        """A tensor with this axis as (samples, times, *other axes)."""
        front = tensor.movedim(self.axis, 0) if self.axis else tensor
        if self.inner:
            return front.reshape(self.times, samples, *front.shape[1:]).transpose(0, 1)
        return front.reshape(samples, self.times, *front.shape[1:])

    def rows(self, tensor: Any, samples: int) -> Any:
        """A tensor with the axes of the output as (samples, T, features)."""
        split = tensor if self.axis == 0 and not self.inner else self.split(tensor, samples)
        return split.reshape(samples, -1, tensor.shape[-1])


class WeightedKind(abc.ABC):
    """Operations with a weight and perhaps a bias; `names` are those of their arguments."""

    def __init__(self, *names: str, channels: int = -1):
        self.names, self.channels = names, channels

    def read(self, args: Any, kwargs: Any) -> Arguments | None:
        """The arguments by name; None if some are unknown or unusual."""
        given = dict(zip(self.names, args, strict=False)) | kwargs
        known = len(args) <= len(self.names) and all(name in self.names for name in kwargs)
        return given if known and self.plain(given) else None

    def plain(self, given: Arguments) -> bool:
        """True if the arguments are of the usual kind."""
        return True

    @abc.abstractmethod
    def input(self, given: Arguments) -> Any:
        """h with the axes of samples as in the output, and its features last."""

    def last(self, slopes: Any, given: Arguments) -> Any:
        """delta with its features last."""
        return slopes.movedim(self.channels, -1)

    def pays(self, h: Any, slopes: Any, shape: Any) -> bool:
        """True if products of h and delta are faster than those of whole gradients."""
        return False

    @abc.abstractmethod
    def whole(self, h: Any, slopes: Any, shape: Any) -> Any:
        """The gradients (n, C, size) of a weight of this shape, from h (n, T, K) and delta
        (n, T, C, O).
        """


class Product(WeightedKind):
    """A matrix product with a weight (O, K), or (K, O) if `transposed`."""

    def __init__(self, *names: str, transposed: bool = False, channels: int = -1):
        super().__init__(*names, channels=channels)
        self.transposed = transposed

    def plain(self, given: Arguments) -> bool:
        return given["weight"].ndim == 2 and given["input"].ndim > 1

    def input(self, given: Arguments) -> Any:
        return given["input"]

    def pays(self, h: Any, slopes: Any, shape: Any) -> bool:
        _, t, c, o = slopes.shape
        single = h.shape[-1] * o == shape.numel()  # not a product in each of several groups
        return single and Use(t, h.shape[-1], o).pays(c)

    def whole(self, h: Any, slopes: Any, shape: Any) -> Any:
        n, t, c, o = slopes.shape
        if self.transposed and c == 1:
            return (h.transpose(1, 2) @ slopes[:, :, 0]).reshape(n, c, -1)
        gradient = slopes.reshape(n, t, c * o).transpose(1, 2) @ h
        if self.transposed:
            gradient = gradient.reshape(n, c, o, -1).transpose(2, 3)
        return gradient.reshape(n, c, -1)


class Convolution(Product):
    """A convolution in two dimensions: the product of a weight with patches."""

    def plain(self, given: Arguments) -> bool:
        return bool(given["input"].ndim == 4)

    def input(self, given: Arguments) -> Any:
        options = {name: given[name] for name in ("dilation", "padding", "stride") if name in given}
        size, images = given["weight"].shape[2:], given["input"]
        if isinstance(options.get("padding"), str):
            same = options.pop("padding") == "same"
            total = torch.tensor(options.get("dilation", 1)) * (torch.tensor(size) - 1) * same
            sides = [side for t in reversed(total.tolist()) for side in (t // 2, t - t // 2)]
            images = functional.pad(images, sides)
        return functional.unfold(images, size, **options).transpose(1, 2)

    def last(self, slopes: Any, given: Arguments) -> Any:
        return slopes.flatten(2).transpose(1, 2)

    def whole(self, h: Any, slopes: Any, shape: Any) -> Any:
        n, t, c = slopes.shape[:3]
        groups = h.shape[-1] // shape[1:].numel()
        if groups == 1:
            return super().whole(h, slopes, shape)
        inner, outer = h.reshape(n, t, groups, -1), slopes.reshape(n, t, c, groups, -1)
        return torch.einsum("ntgk,ntcgo->ncgok", inner, outer).reshape(n, c, -1)


class Normalization(WeightedKind):
    """A normalization, whose result is scaled and shifted feature by feature."""

    def __init__(self, function: Any, *names: str, channels: int = -1):
        super().__init__(*names, channels=channels)
        self.function = function

    def plain(self, given: Arguments) -> bool:
        return not given.get("training", False)

    def input(self, given: Arguments) -> Any:
        bare = {name: value for name, value in given.items() if name not in ("weight", "bias")}
        return self.last(self.function(**bare), given)

    def last(self, slopes: Any, given: Arguments) -> Any:
        if "normalized_shape" in given:
            return slopes.flatten(-len(given["normalized_shape"]))
        return super().last(slopes, given)

    def whole(self, h: Any, slopes: Any, shape: Any) -> Any:
        return torch.einsum("nto,ntco->nco", h, slopes)


class Lookup(WeightedKind):
    """Rows of a table by their numbers."""

    def plain(self, given: Arguments) -> bool:
        return given.get("max_norm") is None and not given.get("scale_grad_by_freq", False)

    def input(self, given: Arguments) -> Any:
        return given["input"][..., None]

    def last(self, slopes: Any, given: Arguments) -> Any:
        none = given.get("padding_idx")
        if none is None:
            return slopes
        none = none if none >= 0 else none + len(given["weight"])
        return slopes * (given["input"] != none)[..., None]  # this row is not trained

    def pays(self, h: Any, slopes: Any, shape: Any) -> bool:
        return bool(slopes.shape[1] < shape[0])

    def whole(self, h: Any, slopes: Any, shape: Any) -> Any:
        n, t, c, o = slopes.shape
        gradient = slopes.new_zeros(n, c, *shape)
        numbers = h.reshape(n, 1, t, 1).expand(n, c, t, o)
        return gradient.scatter_add_(2, numbers, slopes.transpose(1, 2)).flatten(2)


class Entrywise:
    """Operations entry by entry, with one parameter or shared value q among their arguments.

    q is replaced by a copy for every sample, which broadcasts against the other arguments as q
    does. The samples therefore need an axis in which q has length one, and no other operation ever
    gets such a copy: fused ones read beyond it, and a slice would cut the samples.
    """

    def fits(self, shape: Any, axis: int) -> bool:
        """True if a value of this shape has length one along an axis counted from the end."""
        return len(shape) < -axis or shape[axis] == 1

    def copies(self, value: Any, layout: SampleLayout, samples: int) -> Any:
        """A copy of q for every vector of every sample, in which derivatives can be taken."""
        missing = max(0, -layout.axis - value.ndim)
        single = value.detach().reshape(*(1,) * missing, *value.shape)
        shape = list(single.shape)
        shape[layout.axis] = samples * layout.times
        return single.expand(shape).clone().requires_grad_()

    def slopes(self, derivative: Any, layout: SampleLayout, samples: int, shape: Any) -> Any:
        """The derivative in the copies as (samples, times, size of q)."""
        return layout.split(derivative, samples).reshape(samples, layout.times, -1)


class Repeat(Entrywise):
    """Operations whose output is nothing but copies of q, such as expand."""

    def slopes(self, derivative: Any, layout: SampleLayout, samples: int, shape: Any) -> Any:
        """The derivative in the output, summed over its other copies."""
        inner = list((1,) * (derivative.ndim - len(shape)) + tuple(shape))
        del inner[layout.axis]
        parts = layout.split(derivative, samples)
        summed = parts.sum_to_size(samples, layout.times, *inner)
        return summed.reshape(samples, layout.times, -1)


OPERATIONS: dict[Any, WeightedKind] = {
    functional.linear: Product("input", "weight", "bias"),
    torch.addmm: Product("bias", "input", "weight", transposed=True),
    torch.conv2d: Convolution(
        "input", "weight", "bias", "stride", "padding", "dilation", "groups", channels=1
    ),
    functional.layer_norm: Normalization(
        functional.layer_norm, "input", "normalized_shape", "weight", "bias", "eps"
    ),
    functional.rms_norm: Normalization(
        functional.rms_norm, "input", "normalized_shape", "weight", "eps"
    ),
    functional.group_norm: Normalization(
        functional.group_norm, "input", "num_groups", "weight", "bias", "eps", channels=1
    ),
    functional.batch_norm: Normalization(
        functional.batch_norm,
        "input",
        "running_mean",
        "running_var",
        "weight",
        "bias",
        "training",
        "momentum",
        "eps",
        channels=1,
    ),
    functional.embedding: Lookup(
        "input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"
    ),
}
for matmul in (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__):
    OPERATIONS[matmul] = Product("input", "weight", transposed=True)

NAMES = {
    Entrywise(): "add sub mul div true_divide pow maximum minimum where lerp addcmul addcdiv rsub "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ __rpow__",
    Repeat(): "expand expand_as broadcast_to repeat tile",
}
ENTRYWISE: dict[Any, Entrywise] = {
    getattr(home, name): kind
    for kind, names in NAMES.items()
    for name in names.split()
    for home in (torch, torch.Tensor)
    if hasattr(home, name)
}
IN_PLACE = {getattr(torch.Tensor, f"{name}_") for name in ("add", "sub", "mul", "div")}
IN_PLACE |= {getattr(torch.Tensor, f"__i{name}__") for name in ("add", "sub", "mul", "truediv")}
ENTRYWISE |= dict.fromkeys(IN_PLACE, next(iter(NAMES)))

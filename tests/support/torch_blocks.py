"""Blocks of other networks as in timm and the papers they come from, small and written anew."""

import math

import torch
from torch import nn
from torch.nn import functional

from support.torch_nets import case, lin, make, mlp, normal, parameter, read

NORM, SEQUENCE, IMAGE = make(nn.LayerNorm, 4), normal(5, 4), normal(2, 6, 6)
CHANNELS = normal(4, 5, 5)


@case(CHANNELS, reduce=make(nn.Conv2d, 4, 2, 1), expand=make(nn.Conv2d, 2, 4, 1))
def squeeze_excite(m, x):
    pooled = x.mean((2, 3), keepdim=True)
    return read(x * m.expand(functional.relu(m.reduce(pooled))).sigmoid())


@case(
    CHANNELS,
    depthwise=make(nn.Conv2d, 4, 4, 3, padding=1, groups=4),
    norm=NORM,
    up=lin(4, 8),
    down=lin(8, 4),
    gamma=parameter(4),
)
def convnext(m, x):
    h = m.norm(m.depthwise(x).permute(0, 2, 3, 1))
    h = m.gamma * m.down(functional.gelu(m.up(h)))
    return read(x + h.permute(0, 3, 1, 2))


@case(
    IMAGE,
    up=make(nn.Conv2d, 2, 4, 1),
    norm=make(nn.BatchNorm2d, 4),
    depthwise=make(nn.Conv2d, 4, 4, 3, padding=1, groups=4),
    down=make(nn.Conv2d, 4, 2, 1),
)
def inverted(m, x):
    h = functional.hardswish(m.norm(m.depthwise(functional.relu6(m.up(x)))))
    return read(x + m.down(h))


@case(
    IMAGE,
    a=make(nn.Conv2d, 2, 3, 3, padding=1, bias=False),
    b=make(nn.Conv2d, 3, 3, 3, padding=1, bias=False),
    side=make(nn.Conv2d, 2, 3, 1),
    norm1=make(nn.BatchNorm2d, 3),
    norm2=make(nn.BatchNorm2d, 3),
)
def residual(m, x):
    h = functional.relu(m.norm1(m.a(x)))
    return read(functional.relu(m.norm2(m.b(h)) + m.side(x)))


@case(IMAGE, conv=make(nn.Conv2d, 2, 3, 3), gain=parameter(3, 1, 1, 1))
def standardized(m, x):
    w = m.conv.weight
    spread, mean = torch.var_mean(w, dim=(1, 2, 3), keepdim=True)
    return read(functional.conv2d(x, m.gain * (w - mean) * (spread + 1e-6).rsqrt(), m.conv.bias))


@case(SEQUENCE, norm=make(nn.LayerNorm, 4, elementwise_affine=False), condition=lin(4, 8))
def modulated(m, x):
    scale, shift = m.condition(x.mean(1)).chunk(2, dim=-1)
    return read(m.norm(x) * (1 + scale[:, None]) + shift[:, None])


@case(normal(4), hyper=lin(3, 12), code=parameter(3))
def generated(m, x):
    """A hypernetwork: the weight is the output of a layer for a learned code."""
    return read(functional.linear(x, m.hyper(m.code).view(3, 4)))


@case(IMAGE, hyper=lin(2, 18))
def generated_per_sample(m, x):
    """Dynamic convolution: every sample has its own kernel, as groups of one convolution."""
    kernels = m.hyper(x.mean((2, 3))).view(-1, 2, 3, 3)
    flat = x.reshape(1, -1, *x.shape[2:])
    return read(functional.conv2d(flat, kernels, groups=len(x)).view(len(x), 1, 4, 4))


@case(SEQUENCE, decay=parameter(4), b=lin(4, 4), c=lin(4, 4), skip=parameter(4))
def state_space(m, x):
    decay, state, rows = torch.exp(-m.decay.exp()), torch.zeros(len(x), 4, dtype=x.dtype), []
    for part in x.unbind(1):
        state = decay * state + m.b(part)
        rows.append(m.c(state) + m.skip * part)
    return read(torch.stack(rows, dim=1))


@case(SEQUENCE, step=lin(4, 4), a=parameter(4, 2), b=parameter(2), c=parameter(2))
def selective(m, x):
    step, state, rows = functional.softplus(m.step(x)), torch.zeros(len(x), 4, 2, dtype=x.dtype), []
    for part, size in zip(x.unbind(1), step.unbind(1), strict=True):
        state = torch.exp(-size[..., None] * m.a.exp()) * state + part[..., None] * m.b
        rows.append((state * m.c).sum(-1))
    return read(torch.stack(rows, dim=1))


@case(normal(4, 6), a=make(nn.Conv1d, 4, 4, 2, dilation=2), b=make(nn.Conv1d, 4, 4, 2, dilation=2))
def gated(m, x):
    return read(torch.tanh(m.a(x)) * torch.sigmoid(m.b(x)))


@case(normal(4), inner=mlp(2, 4), turn=parameter(4, 4))
def coupled(m, x):
    a, b = x.chunk(2, dim=-1)
    scale, shift = m.inner(a).chunk(2, dim=-1)
    return read(torch.cat([a, b * scale.exp() + shift], -1) @ m.turn)


@case(normal(4), means=parameter(3, 4), spread=parameter(3, 1), weights=parameter(3))
def mixture(m, x):
    apart = (x[:, None] - m.means) * torch.exp(-m.spread)
    return torch.logsumexp(m.weights.log_softmax(0) - apart.square().sum(-1), dim=-1)[:, None]


@case(SEQUENCE, emit=lin(4, 3), first=parameter(3), turns=parameter(3, 3))
def chain(m, x):
    scores, alpha = m.emit(x), m.first
    for part in scores.unbind(1):
        alpha = torch.logsumexp(alpha[..., :, None] + m.turns, dim=-2) + part
    return alpha.logsumexp(-1)[:, None]


@case(normal(4), w=parameter(3, 4, 5), base=parameter(4, 3))
def splines(m, x):
    basis = torch.exp(-(x[..., None] - torch.linspace(-2, 2, 5, dtype=x.dtype)).square())
    return read(torch.einsum("nik,oik->no", basis, m.w) + functional.silu(x) @ m.base)


@case(SEQUENCE, w=lin(4, 3), left=parameter(3), right=parameter(3))
def graph(m, x):
    h, edges = m.w(x), torch.ones(5, 5, dtype=torch.bool).triu(-1)
    scores = (h @ m.left)[:, :, None] + (h @ m.right)[:, None]
    scores = functional.leaky_relu(scores).masked_fill(~edges, -math.inf)
    return read(scores.softmax(-1) @ h)


@case(IMAGE, w=parameter(2, 2, 3, 3))
def turned(m, x):
    """A convolution with the four rotations of one kernel."""
    kernels = torch.cat([torch.rot90(m.w, k, (2, 3)) for k in range(4)])
    return read(functional.conv2d(x, kernels).unflatten(1, (4, -1)).amax(1))


@case(normal(4), w=parameter(3, 4))
def straight(m, x):
    w = m.w + (m.w.sign() - m.w).detach()
    return read(functional.linear(x, w))


@case(
    IMAGE,
    down=make(nn.Conv2d, 2, 3, 2, 2),
    up=make(nn.ConvTranspose2d, 3, 2, 2, 2),
    out=make(nn.Conv2d, 4, 2, 1),
)
def unet(m, x):
    low = functional.relu(m.down(x))
    return read(m.out(torch.cat([x, m.up(low)], dim=1)))


@case(normal(4), a=lin(4, 4), b=lin(4, 4))
def recurrent_depth(m, x):
    h = torch.zeros_like(x)
    for _ in range(4):
        h = torch.tanh(m.a(h) + m.b(x))
    return read(h)


@case(normal(4), a=lin(4, 4), gate=lin(4, 4))
def highway(m, x):
    gate = m.gate(x).sigmoid()
    return read(gate * torch.relu(m.a(x)) + (1 - gate) * x)


@case(normal(4), w=parameter(3, 4), scale=parameter(1))
def cosine_classifier(m, x):
    return m.scale.exp() * functional.normalize(x) @ functional.normalize(m.w).T

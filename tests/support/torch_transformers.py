"""Parts of transformers as in timm, vit-pytorch and Transformers, small and written anew."""

import math

import torch
from torch import nn
from torch.nn import functional

from support.torch_nets import CASES, Net, case, lin, make, mlp, normal, parameter, read, tokens

NORM, SEQUENCE, IMAGE = make(nn.LayerNorm, 4), normal(5, 4), normal(2, 6, 6)


def experts():
    return nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])


def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return (scores if mask is None else scores + mask).softmax(-1) @ v


@case(SEQUENCE, norm=NORM, norm2=NORM, qkv=lin(4, 12), out=lin(4, 4), up=lin(4, 6), down=lin(6, 4))
def pre_norm(m, x):
    q, k, v = m.qkv(m.norm(x)).unflatten(-1, (3, 2, 2)).permute(2, 0, 3, 1, 4)
    x = x + m.out(attention(q, k, v).transpose(1, 2).flatten(2))
    return read(x + m.down(functional.gelu(m.up(m.norm2(x)))))


def rotate(x):
    half, times = x.shape[-1] // 2, torch.arange(x.shape[-2], dtype=x.dtype)
    angles = times[:, None] / 100.0 ** (torch.arange(half, dtype=x.dtype) / half)
    a, b = x.split(half, dim=-1)
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


@case(SEQUENCE, q=lin(4, 4), k=lin(4, 4), v=lin(4, 4))
def rotary(m, x):
    q, k, v = (part(x).unflatten(-1, (2, 2)).transpose(1, 2) for part in (m.q, m.k, m.v))
    return read(attention(rotate(q), rotate(k), v).transpose(1, 2).flatten(2))


@case(SEQUENCE, q=lin(4, 4), k=lin(4, 2), v=lin(4, 2))
def grouped_queries(m, x):
    q = m.q(x).unflatten(-1, (2, 2)).transpose(1, 2)
    k, v = (part(x).unflatten(-1, (1, 2)).transpose(1, 2) for part in (m.k, m.v))
    return read(attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)))


@case(SEQUENCE, w=parameter(4))
def root_mean_square(m, x):
    wide = x.to(torch.float64)
    return read(m.w * (wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()).to(x.dtype))


@case(SEQUENCE, gate=lin(4, 6), up=lin(4, 6), down=lin(6, 4, bias=False))
def swiglu(m, x):
    return read(m.down(functional.silu(m.gate(x)) * m.up(x)))


@case(SEQUENCE, norm=NORM, norm2=NORM, times=mlp(5, 5), channels=mlp(4, 4))
def mixer(m, x):
    x = x + m.times(m.norm(x).transpose(1, 2)).transpose(1, 2)
    return read(x + m.channels(m.norm2(x)))


@case(
    IMAGE,
    patches=make(nn.Conv2d, 2, 4, 3, 3),
    cls=parameter(1, 1, 4),
    position=parameter(1, 5, 4),
    norm=NORM,
)
def vision(m, x):
    x = m.patches(x).flatten(2).transpose(1, 2)
    x = torch.cat([m.cls.expand(len(x), -1, -1), x], dim=1) + m.position
    return read(m.norm(x)[:, 0])


@case(SEQUENCE, cls=parameter(1, 1, 4), position=parameter(1, 6, 4), norm=NORM)
def vision_slices(m, x):
    """vit-pytorch: as many positions as tokens, and a slice of them."""
    x = torch.cat([m.cls.repeat(len(x), 1, 1), x], dim=1)
    x += m.position[:, : x.shape[1]]
    return read(m.norm(x))


@case(IMAGE, position=parameter(1, 2, 3, 3), conv=make(nn.Conv2d, 2, 3, 3))
def vision_resized(m, x):
    grid = functional.interpolate(m.position, size=x.shape[2:], mode="bilinear")
    return read(m.conv(x + grid))


@case(
    tokens(5),
    e=parameter(4, 7),
    position=parameter(5, 4),
    k=parameter(2, 3, 4),
    q=parameter(2, 3, 4),
    v=parameter(2, 3, 4),
    o=parameter(4, 6),
    up=parameter(6, 4),
    bias=parameter(6),
    down=parameter(4, 6),
    u=parameter(4, 3),
)
def nanda(m, x):
    """The one-layer transformer of the grokking papers, with weights as parameters."""
    x = torch.einsum("dbp->bpd", m.e[:, x]) + m.position[: x.shape[1]]
    k, q, v = (torch.einsum("ihd,bpd->biph", w, x) for w in (m.k, m.q, m.v))
    z = attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + torch.einsum("df,bqf->bqd", m.o, z)
    h = functional.relu(torch.einsum("md,bpd->bpm", m.up, x) + m.bias)
    return read((x + torch.einsum("dm,bpm->bpd", m.down, h)) @ m.u)


@case(
    tokens(5),
    words=make(nn.Embedding, 7, 4),
    places=make(nn.Embedding, 8, 4),
    norm=NORM,
    w=parameter(4, 12),
    bias=parameter(12),
)
def gpt(m, x):
    h = m.words(x) + m.places(torch.arange(x.shape[1]))
    q, k, v = torch.addmm(m.bias, h.view(-1, 4), m.w).view(*x.shape, -1).split(4, dim=2)
    mask = torch.full((x.shape[1], x.shape[1]), -math.inf, dtype=h.dtype).triu(1)
    return functional.linear(m.norm(h + attention(q, k, v, mask)), m.words.weight).mean(1)


@case(SEQUENCE, table=parameter(9, 2), qkv=lin(4, 12))
def relative_bias(m, x):
    """Swin: rows of a table of biases by the distance of two places."""
    places = torch.arange(x.shape[1])
    bias = m.table[places[:, None] - places + x.shape[1] - 1].permute(2, 0, 1)
    q, k, v = m.qkv(x).unflatten(-1, (3, 2, 2)).permute(2, 0, 3, 1, 4)
    return read(attention(q, k, v, bias))


@case(SEQUENCE, table=make(nn.Embedding, 5, 2), qkv=lin(4, 12))
def buckets(m, x):
    """T5: the same with an embedding."""
    places = torch.arange(x.shape[1])
    bias = m.table((places - places[:, None]).clamp(-2, 2) + 2).permute(2, 0, 1)[None]
    q, k, v = m.qkv(x).unflatten(-1, (3, 2, 2)).permute(2, 0, 3, 1, 4)
    return read(attention(q, k, v, bias))


@case(
    SEQUENCE, latents=parameter(1, 3, 4), attend=make(nn.MultiheadAttention, 4, 2, batch_first=True)
)
def latents(m, x):
    q = m.latents.expand(len(x), -1, -1)
    return read(m.attend(q, x, x)[0])


@case(SEQUENCE, v=lin(4, 4), mix=parameter(1, 1, 4))
def time_mix(m, x):
    before = functional.pad(x, (0, 0, 1, -1))
    return read(m.v(torch.lerp(x, before, m.mix)) * torch.lerp(x, before, m.mix.sigmoid()))


@case(SEQUENCE, qkv=lin(4, 12))
def linear_attention(m, x):
    q, k, v = (functional.elu(part) + 1 for part in m.qkv(x).chunk(3, dim=-1))
    return read(q @ (k.transpose(1, 2) @ v) / (q @ k.sum(1)[..., None]))


def tied():
    module = Net(
        lambda m, x: m.head(torch.tanh(m.mix(m.words(x)))).mean(1),
        {"words": make(nn.Embedding, 7, 4), "mix": make(nn.Linear, 4, 4)},
    )
    module.head = nn.Linear(4, 7, bias=False)
    module.head.weight = module.words.weight
    return module


@case(SEQUENCE, base=lin(4, 3), a=parameter(2, 4), b=parameter(3, 2))
def low_rank(m, x):
    return read(m.base(x) + functional.linear(functional.linear(x, m.a), m.b) / 2)


@case(normal(4), experts=experts, gate=lin(4, 3))
def soft_experts(m, x):
    each = torch.stack([expert(x) for expert in m.experts], dim=1)
    return read((m.gate(x).softmax(-1)[..., None] * each).sum(1))


@case(normal(4), experts=experts, gate=lin(4, 3))
def hard_experts(m, x):
    choice, out = m.gate(x).argmax(-1), torch.zeros_like(x)
    for number, expert in enumerate(m.experts):
        mine = choice == number
        out[mine] = expert(x[mine])
    return read(out * m.gate(x).softmax(-1).amax(-1, keepdim=True))


CASES |= {
    "tied embeddings": (tied, tokens(5)),
}

"""Small networks with every kind of layer and function of torch that holds parameters."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, prune

from support.torch_nets import CASES, N, both, case, make, net, normal, parameter, read, tokens

RECURRENT = {"input_size": 3, "hidden_size": 4, "batch_first": True}
WIDE = {"d_model": 4, "nhead": 2, "dim_feedforward": 6, "batch_first": True}
SEQUENCE, IMAGE = normal(5, 3), normal(2, 6, 6)


def layer(kind, *args, **options):
    """A network of one layer, whose outputs are read."""
    return net(lambda m, x: read(m.layer(x)), layer=make(kind, *args, **options))


def first(kind, *args, **options):
    """A network of one layer that returns its outputs and a state."""
    return net(lambda m, x: read(m.layer(x)[0]), layer=make(kind, *args, **options))


def between(run):
    """A function without parameters between two linear layers of 4 numbers."""
    parts = {"a": make(nn.Linear, 4, 4), "b": make(nn.LazyLinear, 3)}
    return net(lambda m, x: read(m.b(run(m.a(x)))), **parts)


def images(run):
    """A function without parameters between two convolutions of 4 channels."""
    parts = {"a": make(nn.Conv2d, 2, 4, 3, padding=1), "b": make(nn.LazyConv2d, 3, 2)}
    return net(lambda m, x: read(m.b(run(m.a(x)))), **parts)


def parametrized(change, kind, *args, **options):
    return net(lambda m, x: read(m.layer(x)), layer=lambda: change(kind(*args, **options)))


def pruned(linear):
    return prune.random_unstructured(linear, "weight", amount=0.4)


def cell(m, x):
    state = torch.zeros(len(x), 4, dtype=x.dtype)
    for part in x.unbind(1):
        state = m.cell(part, state)
    return read(state)


@case(SEQUENCE, cell=make(nn.LSTMCell, 3, 4))
def lstm_cell(m, x):
    state = 2 * (torch.zeros(len(x), 4, dtype=x.dtype),)
    for part in x.unbind(1):
        state = m.cell(part, state)
    return read(state[0])


@case(both(SEQUENCE, lambda: torch.randint(1, 6, (N,))), rnn=make(nn.LSTM, **RECURRENT))
def packed(m, x, lengths):
    rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return read(m.rnn(rows)[1][0][-1])


def attend(m, x):
    return read(m.a(x, x, x)[0])


@case(
    both(normal(5, 4), normal(6, 3)),
    a=make(nn.MultiheadAttention, 4, 2, batch_first=True, kdim=3, vdim=3),
)
def cross(m, x, y):
    return read(m.a(x, y, y)[0])


@case(
    normal(5, 4),
    a=lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**WIDE), 2, enable_nested_tensor=False
    ),
)
def causal(m, x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
    return read(m.a(x, mask=mask, is_causal=True))


@case(IMAGE, theta=parameter(2, 3, scale=0.1))
def warped(m, x):
    theta = (m.theta + torch.eye(2, 3, dtype=x.dtype)).expand(len(x), 2, 3)
    grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
    return read(functional.grid_sample(x, grid, align_corners=False))


@case(normal(6), real=parameter(4), imaginary=parameter(4))
def fourier(m, x):
    spectrum = torch.fft.rfft(x) * torch.complex(m.real, m.imaginary)
    return read(torch.fft.irfft(spectrum, n=x.shape[-1]))


@case(normal(4), w=parameter(4))
def scattered(m, x):
    index = torch.tensor([0, 2, 1, 0])
    return read(torch.zeros_like(x).index_add(1, index, x * m.w))


@case(normal(4), w=parameter(6))
def skew(m, x):
    matrix = torch.zeros(4, 4, dtype=x.dtype)
    rows, columns = torch.triu_indices(4, 4, 1)
    matrix[rows, columns] = m.w
    return read(x @ torch.matrix_exp(matrix - matrix.T))


@case(normal(4), w=parameter(4, 4))
def solved(m, x):
    return read(torch.linalg.solve(m.w @ m.w.T + torch.eye(4, dtype=x.dtype), x[..., None]))


@case(normal(4), w=parameter(4, 6), s=parameter(6))
def chosen(m, x):
    values, places = (x @ m.w).topk(3, dim=-1)
    return read(values * m.s[places])


@case(normal(5, 4), w=parameter(4))
def rms(m, x):
    return read(functional.rms_norm(x, (4,), m.w))


@case(normal(4), w=parameter(3, 2, 4))
def ensemble(m, x):
    return read(torch.vmap(functional.linear, (None, 0), out_dims=1)(x, m.w))


class Straight(torch.autograd.Function):
    """A rounded product whose derivative is that of the product; without setup_context."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (8 * x * w).round() / 8

    @staticmethod
    def backward(ctx, slope):
        x, w = ctx.saved_tensors
        return slope * w, (slope * x).sum_to_size(w.shape)


CASES |= {
    "linear": (layer(nn.Linear, 4, 3), normal(4)),
    "bilinear": (
        net(lambda m, x, y: read(m.b(x, y)), b=make(nn.Bilinear, 3, 4, 5)),
        both(normal(3), normal(4)),
    ),
    "conv1d": (layer(nn.Conv1d, 3, 4, 3, padding=1), normal(3, 6)),
    "conv2d": (layer(nn.Conv2d, 2, 4, 3, stride=2, dilation=2), normal(2, 7, 8)),
    "conv2d circular": (layer(nn.Conv2d, 2, 3, 3, padding=1, padding_mode="circular"), IMAGE),
    "conv2d depthwise": (layer(nn.Conv2d, 4, 8, 3, groups=4), normal(4, 5, 5)),
    "conv3d": (layer(nn.Conv3d, 2, 3, 2), normal(2, 3, 3, 3)),
    "conv transpose 1d": (layer(nn.ConvTranspose1d, 3, 4, 3, stride=2), normal(3, 5)),
    "conv transpose 2d": (layer(nn.ConvTranspose2d, 2, 3, 3, stride=2), normal(2, 3, 3)),
    "conv transpose 3d": (layer(nn.ConvTranspose3d, 2, 2, 2, groups=2), normal(2, 2, 2, 2)),
    "batch norm 1d": (layer(nn.BatchNorm1d, 4), normal(4)),
    "batch norm 2d": (layer(nn.BatchNorm2d, 2), IMAGE),
    "batch norm 3d": (layer(nn.BatchNorm3d, 2), normal(2, 2, 3, 2)),
    "instance norm": (layer(nn.InstanceNorm2d, 2, affine=True), IMAGE),
    "group norm": (layer(nn.GroupNorm, 2, 4), normal(4, 3, 3)),
    "layer norm": (layer(nn.LayerNorm, (5, 3)), SEQUENCE),
    "rms norm": (layer(nn.RMSNorm, 4), normal(5, 4)),
    "local response norm": (images(nn.LocalResponseNorm(2)), IMAGE),
    "prelu": (layer(nn.PReLU), normal(4)),
    "prelu of channels": (layer(nn.PReLU, 2), IMAGE),
    "glu": (between(lambda x: functional.glu(x)), normal(4)),
    "softmax": (between(lambda x: x.softmax(-1).log()), normal(4)),
    "embedding": (layer(nn.Embedding, 7, 3), tokens(5)),
    "embedding padding": (layer(nn.Embedding, 7, 3, padding_idx=2), tokens(5)),
    "embedding by frequency": (layer(nn.Embedding, 7, 3, scale_grad_by_freq=True), tokens(5)),
    "embedding of bounded norm": (layer(nn.Embedding, 7, 3, max_norm=0.5), tokens(5)),
    "embedding sparse": (layer(nn.Embedding, 7, 3, sparse=True), tokens(5)),
    "embedding bag mean": (layer(nn.EmbeddingBag, 7, 3), tokens(5)),
    "embedding bag sum": (layer(nn.EmbeddingBag, 7, 3, mode="sum", sparse=True), tokens(5)),
    "embedding bag max": (layer(nn.EmbeddingBag, 7, 3, mode="max"), tokens(5)),
    "embedding bag weights": (
        net(
            lambda m, x: read(m.b(x, per_sample_weights=m.w.expand(len(x), 5))),
            w=parameter(5),
            b=make(nn.EmbeddingBag, 7, 3, mode="sum"),
        ),
        tokens(5),
    ),
    "rnn": (first(nn.RNN, **RECURRENT), SEQUENCE),
    "rnn relu": (first(nn.RNN, **RECURRENT, nonlinearity="relu", num_layers=2), SEQUENCE),
    "lstm": (first(nn.LSTM, **RECURRENT), SEQUENCE),
    "lstm both ways": (first(nn.LSTM, **RECURRENT, num_layers=2, bidirectional=True), SEQUENCE),
    "lstm projected": (first(nn.LSTM, **RECURRENT, proj_size=2), SEQUENCE),
    "gru": (first(nn.GRU, **RECURRENT), SEQUENCE),
    "gru both ways": (first(nn.GRU, **RECURRENT, bidirectional=True), SEQUENCE),
    "rnn cell": (net(cell, cell=make(nn.RNNCell, 3, 4)), SEQUENCE),
    "gru cell": (net(cell, cell=make(nn.GRUCell, 3, 4)), SEQUENCE),
    "attention": (net(attend, a=make(nn.MultiheadAttention, 4, 2, batch_first=True)), normal(5, 4)),
    "attention with biases": (
        net(
            attend,
            a=make(
                nn.MultiheadAttention, 4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True
            ),
        ),
        normal(5, 4),
    ),
    "encoder layer": (layer(nn.TransformerEncoderLayer, **WIDE, norm_first=True), normal(5, 4)),
    "decoder layer": (
        net(lambda m, x, y: read(m.a(x, y)), a=make(nn.TransformerDecoderLayer, **WIDE)),
        both(normal(3, 4), normal(5, 4)),
    ),
    "pixel shuffle": (images(nn.PixelShuffle(2)), IMAGE),
    "pixel unshuffle": (images(nn.PixelUnshuffle(2)), IMAGE),
    "channel shuffle": (images(nn.ChannelShuffle(2)), IMAGE),
    "interpolate": (images(make(functional.interpolate, scale_factor=1.5, mode="bicubic")), IMAGE),
    "upsample": (images(nn.Upsample(scale_factor=2)), IMAGE),
    "max pool": (images(nn.MaxPool2d(2)), IMAGE),
    "average pool": (images(nn.AvgPool2d(2)), IMAGE),
    "adaptive pool": (images(nn.AdaptiveMaxPool2d(3)), IMAGE),
    "lp pool": (images(nn.LPPool2d(2, 2)), IMAGE),
    "reflection": (images(nn.ReflectionPad2d(1)), IMAGE),
    "unfold and fold": (images(lambda x: nn.Fold((6, 6), 3)(nn.Unfold(3)(x))), IMAGE),
    "weight norm": (parametrized(parametrizations.weight_norm, nn.Linear, 4, 3), normal(4)),
    "weight norm of conv2d": (
        parametrized(parametrizations.weight_norm, nn.Conv2d, 2, 3, 3),
        IMAGE,
    ),
    "spectral norm": (parametrized(parametrizations.spectral_norm, nn.Linear, 4, 3), normal(4)),
    "orthogonal": (parametrized(parametrizations.orthogonal, nn.Linear, 4, 4), normal(4)),
    "pruned": (parametrized(pruned, nn.Linear, 4, 3), normal(4)),
    "einsum": (
        net(lambda m, x: read(torch.einsum("ntk,hko->ntho", x, m.w)), w=parameter(2, 4, 3)),
        normal(5, 4),
    ),
    "tensordot": (
        net(lambda m, x: read(torch.tensordot(x, m.w, 2)), w=parameter(5, 4, 3)),
        normal(5, 4),
    ),
    "baddbmm": (
        net(
            lambda m, x: read(torch.baddbmm(m.b, x, m.w.expand(len(x), 4, 3))),
            b=parameter(1, 3),
            w=parameter(4, 3),
        ),
        normal(5, 4),
    ),
    "cdist": (net(lambda m, x: read(torch.cdist(x, m.c)), c=parameter(6, 4)), normal(4)),
    "cdist of sequences": (
        net(lambda m, x: read(torch.cdist(x, m.c)), c=parameter(6, 4)),
        normal(5, 4),
    ),
    "cdist of norm 1": (
        net(lambda m, x: read(torch.cdist(x, m.c, p=1.0)), c=parameter(6, 4)),
        normal(4),
    ),
    "cosine similarity": (
        net(
            lambda m, x: read(functional.cosine_similarity(x[:, None], m.c, dim=-1)),
            c=parameter(6, 4),
        ),
        normal(4),
    ),
    "pairwise distance": (
        net(lambda m, x: functional.pairwise_distance(x, m.c)[:, None], c=parameter(1, 4)),
        normal(4),
    ),
    "dot product attention": (
        net(
            lambda m, x: read(
                functional.scaled_dot_product_attention(m.q.expand(len(x), 3, 4), x, x)
            ),
            q=parameter(3, 4),
        ),
        normal(5, 4),
    ),
    "rows by number": (
        net(lambda m, x: read(m.t[x] * m.s), t=parameter(7, 3), s=parameter(3)),
        tokens(5),
    ),
    "cumulative sum": (
        net(lambda m, x: read((x * m.w).cumsum(1).logcumsumexp(2)), w=parameter(4)),
        normal(5, 4),
    ),
    "kronecker product": (
        net(lambda m, x: read(x @ torch.kron(m.a, m.b)), a=parameter(2, 2), b=parameter(2, 2)),
        normal(4),
    ),
    "own backward": (net(lambda m, x: read(Straight.apply(x, m.w)), w=parameter(4)), normal(4)),
    "cross entropy": (
        net(
            lambda m, x, y: functional.cross_entropy(m.a(x), y, reduction="none"),
            a=make(nn.Linear, 4, 7),
        ),
        both(normal(4), tokens()),
    ),
    "triplet loss": (
        net(
            lambda m, x, y, z: functional.triplet_margin_loss(
                m.a(x), m.a(y), m.a(z), reduction="none"
            ),
            a=make(nn.Linear, 4, 3),
        ),
        both(normal(4), normal(4), normal(4)),
    ),
    "adaptive softmax": (
        net(
            lambda m, x: read(m.a.log_prob(x)),
            a=make(nn.AdaptiveLogSoftmaxWithLoss, 4, 8, cutoffs=[3], div_value=2.0),
        ),
        normal(4),
    ),
}

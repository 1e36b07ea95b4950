"""Kernels of architectures of Transformers, against plain backward passes in float64."""

import numpy as np
import pytest

import penchant

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", reason="needs Transformers: the extra stacks")

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
TOKENS = {"vocab_size": 50, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


def tokens():
    return torch.randint(1, 50, (4, 6))


def bert():
    config = transformers.BertConfig(**TOKENS, **SIZES, num_labels=3)
    return transformers.BertForSequenceClassification(config), tokens()


def llama():
    more = {"num_key_value_heads": 1, "tie_word_embeddings": True}
    config = transformers.LlamaConfig(**TOKENS, **SIZES, **more)
    return transformers.LlamaForCausalLM(config), tokens()


def vision():
    config = transformers.ViTConfig(**SIZES, image_size=16, patch_size=8, num_labels=3)
    return transformers.ViTForImageClassification(config), torch.randn(4, 3, 16, 16)


def convnext():
    config = transformers.ConvNextConfig(
        num_stages=2, hidden_sizes=[8, 16], depths=[1, 1], num_labels=3
    )
    return transformers.ConvNextForImageClassification(config), torch.randn(4, 3, 32, 32)


@pytest.mark.parametrize("build", [bert, llama, vision, convnext])
def test_one_pass_gives_the_gradients_in_all_parameters(build):
    torch.manual_seed(0)
    net, x = build()
    net, x = net.double().eval(), x.double() if x.is_floating_point() else x
    watch = penchant.watch(net, x, budget=None, raise_errors=True)
    assert not watch.backend.gradients.rest
    params = dict(net.named_parameters())
    rows = []
    for n in range(4):
        for value in net(x[n : n + 1]).logits.reshape(-1):
            found = torch.autograd.grad(value, list(params.values()), retain_graph=True)
            rows.append([part.reshape(-1).numpy() for part in found])
    for name, kernel, parts in zip(
        params, watch.start.kernels, zip(*rows, strict=True), strict=True
    ):
        J = np.array(parts).reshape(4, len(rows) // 4, -1)
        expected = np.einsum("ncp,mcp->nm", J, J) / J.shape[1]
        atol = 1e-10 * max(np.abs(watch.start.kernel).max(), 1e-12)
        np.testing.assert_allclose(kernel, expected, rtol=0, atol=atol, err_msg=name)

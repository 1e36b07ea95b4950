"""One look of a watch at nets that people train, against torch.func.

An MLP (784-1000-200-10 with ReLU, 100 probe inputs), ViT-tiny (12 layers of 192 dimensions, images
of 224 in patches of 16, 8 probe inputs), ResNet-18 on images of 32 (50 probe inputs) with the stem
for large images and with that for small ones (CIFAR), all with 10 outputs, and GPT-2 of
Transformers (2 layers of 64 dimensions, 500 tokens, 40 sequences of 32), for whose 16,000 outputs
32 random sums stand; all in float32. PyTorch runs two recipes for the mean kernel, vmap(jacrev) of
all outputs at once and vmap(grad) output by output, and the faster one counts; ResNet-18 has only
the second, since the first takes 22 GB. A look is the kernel layer by layer, the outputs, the
linearized model and all norms; the set-up of a watch takes two kernels. Every measurement has a
process of its own with one thread, in turns, and the best of their processor times counts, which
other programs disturb less than wall time. The difference is that to torch.func in float64, on
three probe inputs. The interpreter that TORCH_PYTHON names runs all (this one if it names none);
GPT-2 needs Transformers there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

NETS = {"MLP": 100, "ViT-tiny": 8, "ResNet-18": 50, "ResNet-18, CIFAR": 50, "GPT-2": 40}  # probes
ROUTES = {
    "MLP": ("watch", "at once", "by output"),
    "ViT-tiny": ("watch", "at once", "by output"),
    "ResNet-18": ("watch", "by output"),
    "ResNet-18, CIFAR": ("watch", "by output"),
    "GPT-2": ("watch", "at once", "by output"),
}
SUMS = 32  # the watch's own number
FEW = 3  # probe inputs in float64


def vision(width: int, depth: int, heads: int, size: int, patch: int) -> Any:
    """A vision transformer with 10 outputs."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.first(x)).unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*parts)
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    class Vision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, width))
            self.position = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.position
            return self.head(self.norm(self.blocks(x))[:, 0])

    return Vision()


def residual(widths: tuple[int, ...], repeats: int, small: bool = False) -> Any:
    """A residual net of pairs of convolutions with 10 outputs, in eval mode.

    With the stem for `small` images all places of the image enter the first pair.
    """
    import torch
    from torch import nn

    def convolution(inputs: int, outputs: int, size: int, stride: int) -> list[Any]:
        plain = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return [plain, nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            first, second = (
                convolution(inputs, outputs, 3, stride),
                convolution(outputs, outputs, 3, 1),
            )
            self.body = nn.Sequential(*first, nn.ReLU(inplace=True), *second)
            same = inputs == outputs and stride == 1
            self.side = nn.Sequential(*([] if same else convolution(inputs, outputs, 1, stride)))

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.side(x))

    first = convolution(3, widths[0], 3, 1) if small else convolution(3, widths[0], 7, 2)
    layers, inputs = [*first, nn.ReLU()], widths[0]
    layers += [] if small else [nn.MaxPool2d(3, 2, 1)]
    for place, width in enumerate(widths):
        for number in range(repeats):
            layers.append(Block(inputs, width, 2 if place and not number else 1))
            inputs = width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)]
    return nn.Sequential(*layers, *head)


def language(tokens: int) -> Any:
    """GPT-2 of Transformers without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"vocab_size": tokens, "n_embd": 64, "n_layer": 2, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, **off, **ends))


def given(name: str, quick: bool) -> tuple[Any, Any]:
    """The net in eval mode and its probe inputs."""
    import torch

    torch.manual_seed(0)
    probes = 4 if quick else NETS[name]
    if name == "ViT-tiny":
        net = vision(32, 2, 2, 32, 16) if quick else vision(192, 12, 3, 224, 16)
        x = torch.randn(probes, 3, *(2 * [32 if quick else 224]))
    elif name == "MLP":
        from watch import SIZES, dense

        net, x = dense(SIZES), torch.randn(probes, SIZES[0])
    elif name.startswith("ResNet-18"):
        small = name.endswith("CIFAR")
        net = residual((8, 16), 1, small) if quick else residual((64, 128, 256, 512), 2, small)
        x = torch.randn(probes, 3, 32, 32)
    else:
        net, x = language(50 if quick else 500), torch.randint(50 if quick else 500, (probes, 32))
    return net.eval(), x


def rival(net: Any, x: Any, route: str) -> tuple[float, np.ndarray]:
    """Processor time of the mean kernel by a recipe of torch.func, and the kernel.

    Attention is computed by its formula, since torch.func has no fast way for the fused one.
    """
    import torch
    from torch.func import functional_call, grad, jacrev, vmap
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from penchant.measures.kernels.outputs import MANY, Output, Projection

    read, params = Output(), dict(net.named_parameters())
    params = {name: value.detach() for name, value in params.items()}
    buffers = dict(net.named_buffers())

    def outputs(params: Any, x: Any) -> Any:
        return read(functional_call(net, (params, buffers), (x[None],)))[0]

    def gram(rows: Any) -> Any:
        flat = [row.flatten(2) for row in rows]
        return sum(torch.einsum("ncp,mcp->nm", row, row) for row in flat)

    def one(params: Any, x: Any, c: Any) -> Any:
        return outputs(params, x)[c]

    small = {"w": torch.ones(2)}  # what torch.func loads at its first use is not counted
    vmap(jacrev(lambda p, x: (x * p["w"]).sum()[None]), (None, 0))(small, torch.ones(2, 2))
    begin = time.process_time()
    with sdpa_kernel(SDPBackend.MATH):
        count = len(outputs(params, x[0]))
        if count > MANY:
            dtype = next(iter(params.values())).dtype
            convert: Callable[[Any], Any] = lambda signs: torch.as_tensor(signs, dtype=dtype)  # noqa: E731
            read.projection, count = Projection(read.shape, SUMS, convert), SUMS
        if route == "at once":
            found = gram(vmap(jacrev(outputs), (None, 0))(params, x).values())
        else:
            rows = vmap(grad(one), (None, 0, None))
            found = sum(
                gram([r[:, None] for r in rows(params, x, c).values()]) for c in range(count)
            )
    return time.process_time() - begin, np.asarray((found / count).double())


def ours(net: Any, x: Any) -> tuple[dict[str, float], np.ndarray]:
    """Processor time of the set-up of a watch and of a look, and the kernel."""
    import torch

    import penchant

    begin = time.process_time()
    watch = penchant.watch(net, x, budget=None, raise_errors=True)
    setup = time.process_time() - begin
    with torch.no_grad():
        for value in net.parameters():
            value.mul_(1.0)  # a step of training that leaves the kernel as it is
    begin = time.process_time()
    watch(1)
    return {"setup": setup, "seconds": time.process_time() - begin}, watch.backend.kernels().sum(0)


def measure(name: str, route: str, quick: str, out: str) -> dict[str, float]:
    """Times of one route, whose kernel is saved in `out`."""
    import torch
    from tangent_kernel import peak

    torch.set_num_threads(1)
    net, x = given(name, bool(int(quick)))
    if route == "watch":
        found, kernel = ours(net, x)
    else:
        fine = route == "float64"
        net, x = (net.double(), x[:FEW]) if fine else (net, x)
        x = x.double() if fine and x.is_floating_point() else x
        took, kernel = rival(net, x, "by output" if fine else route)
        found = {"seconds": took}
    np.save(out, kernel)
    return found | {"bytes": peak()}


def in_processes(name: str, quick: bool, repeats: int) -> dict[str, Any]:
    """The best times of every route, its memory and its difference to float64."""
    found: dict[str, Any] = {}
    source = str(Path(__file__).parents[1] / "src")
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "kernel.npy")
        for route in ("float64", *ROUTES[name] * repeats):
            call = [python, __file__, "--measure", name, route, str(int(quick)), out]
            done = subprocess.run(call, capture_output=True, text=True, env=env)
            if done.returncode:
                raise RuntimeError((done.stderr.strip() or "killed").splitlines()[-1])
            new, kernel = json.loads(done.stdout), np.load(out)
            old = found.get(route, new)
            new = {key: min(value, old[key]) for key, value in new.items()}
            fine = found["float64"]["kernel"] if found else kernel
            part = kernel[:FEW, :FEW]
            new["error"] = float(np.abs(part - fine).max() / np.abs(fine).max())
            found[route] = new | {"kernel": kernel}
    return found


def report(names: Iterable[str], quick: bool) -> None:
    """Prints a row per route of these nets, and the ratios to the better recipe of PyTorch."""
    from clock import ratio, seconds, table

    rows, judged = [], []
    for name in names:
        try:
            found = in_processes(name, quick, 1 if quick else 2)
        except RuntimeError as reason:
            print(f"{name} did not run: {reason}\n")
            continue
        del found["float64"]
        for route, new in found.items():
            what = "a look of a watch" if route == "watch" else f"torch.func, {route}"
            setup = seconds(new["setup"]) if "setup" in new else ""
            rows.append([name, what, seconds(new["seconds"]), setup, f"{new['bytes'] / 1e6:.0f}",
                         f"{new['error']:.1e}"])  # fmt: skip
        rivals = [new for route, new in found.items() if route != "watch"]
        best = {key: min(new[key] for new in rivals) for key in ("seconds", "bytes")}
        judged.append((name, found["watch"], best))
    load = os.getloadavg()[0]
    print(f"processor time on 1 thread; load of the machine {load:.1f}, {os.cpu_count()} cores\n")
    table(["", "", "time", "set-up", "MB of the process", "difference"], rows)
    for name, mine, best in judged:
        ratio(f"{name}: difference to float64, relative", mine["error"], "<= 1e-5")
        times, memory = (mine[key] / best[key] for key in ("seconds", "bytes"))
        ratio(f"{name}: a look / torch.func", times, "<= 1", judged=not quick)
        ratio(f"{name}: memory of the process / torch.func", memory, "<= 1", judged=not quick)
        if name == "GPT-2":
            ratio("GPT-2: seconds of the set-up", mine["setup"], "<= 5", judged=not quick)
        if name.startswith("ResNet-18"):
            most = "<= 15" if name.endswith("CIFAR") else "<= 3"
            ratio(f"{name}: seconds of a look", mine["seconds"], most, judged=not quick)


def main() -> None:
    from clock import arguments

    report(NETS, arguments(__doc__ or "").quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:6])))
    else:
        main()

"""Ten cells in a real kernel: each output has a picture or a table, without a magic command."""

from __future__ import annotations

import base64
import io
import sys

import pytest

from child_processes import PATH

CELLS = [
    (
        "import numpy as np\n"
        "import penchant\n"
        "problem = penchant.problems.sparse_regression(20, 40, sparsity=2)\n"
        "net, method = penchant.DiagonalNet(2, alpha=0.1), penchant.GradientDescent(1e-3)\n"
        "path = penchant.train(net, problem, method, stop=penchant.Steps(200))\n"
        "path",
        "table",
    ),
    ("path.plot()", "picture"),
    ("other = penchant.train(net, problem, penchant.DualFlow())\npenchant.plot([path])", "picture"),
    ("penchant.plot({'steps': path, 'longer': path}, 'norm_l1')", "picture"),
    ("solution = penchant.interpolate(problem, penchant.L1())\nsolution", "table"),
    (
        "penchant.plot({'l1': solution, 'l2': penchant.interpolate(problem, penchant.L2())})",
        "picture",
    ),
    (
        "scales = penchant.solvers.interpolate_path(problem, log_alphas=np.linspace(1, -6, 8))\n"
        "scales.plot()",
        "picture",
    ),
    ("penchant.solvers.saddles(problem).plot()", "picture"),
    (
        "watches = {}\n"
        "for width in (1, 4):\n"
        "    start = np.ones((3, width)) / width\n"
        "    f = lambda w, x: (x @ w**2).sum(axis=1)\n"
        "    watch = penchant.watch(f, np.eye(3), parameters=start, budget=None)\n"
        "    for step in range(1, 30):\n"
        "        parameters = start * (1 + step / 10)\n"
        "        watch(step, parameters, train_loss=1 / step, test_accuracy=step / 30)\n"
        "    watches[f'width {width}'] = watch\n"
        "watch",
        "picture",
    ),
    ("penchant.plot(watches)", "picture"),
    ("penchant.plot(watch)", "picture"),
    ("verdicts = penchant.verify([penchant.lab.all_claims().ids[0]])\nverdicts", "table"),
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell shows: its bundle of MIME types."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    folder = tmp_path_factory.mktemp("notebook")
    patch = pytest.MonkeyPatch()
    for name, value in {
        "PYTHONPATH": PATH,
        "IPYTHONDIR": str(folder),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }.items():
        patch.setenv(name, value)
    spec = folder / "kernels" / "own"
    spec.mkdir(parents=True)
    argv = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (spec / "kernel.json").write_text(
        f'{{"argv": {argv}, "display_name": "own", "language": "python"}}'
    )
    patch.setenv("JUPYTER_PATH", str(folder))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code, _ in CELLS])
    try:
        nbclient.NotebookClient(book, timeout=300, kernel_name="own").execute(cwd=str(folder))
    finally:
        patch.undo()
    return [cell.outputs for cell in book.cells]


@pytest.mark.filterwarnings("ignore")  # of Jupyter about its own event loop and folders
@pytest.mark.parametrize("number", range(len(CELLS)))
def test_the_output_of_a_cell_has_a_picture_or_a_table(outputs, number):
    shown = [output for output in outputs[number] if output.output_type == "execute_result"]
    assert len(shown) == 1, outputs[number]
    data = shown[0].data
    if CELLS[number][1] == "table":
        assert "<table" in data["text/html"]
        return
    encoded = data.get("image/png") or data["text/html"].partition("base64,")[2].partition("'")[0]
    _require_drawing(base64.b64decode(encoded))


def _require_drawing(png):
    """The bytes are a picture on which something is drawn."""
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png))[..., :3]
    assert min(pixels.shape[:2]) > 200
    assert 0.005 < (pixels < 0.9).any(axis=-1).mean() < 0.9

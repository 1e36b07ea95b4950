"""A study's description: everything wrong is told before anything runs, with file and key."""

import dataclasses
import functools
import json
import re
import types
from pathlib import Path

import numpy as np
import pytest

from commands import penchant_command
from penchant import Study, load
from penchant.lab import Registry, read_study, reading
from penchant.lab.studies.cells import cells_of

TOML = """
title = "scale and samples"
seeds = 2
final = ["test_error"]

[problem]
is = "sparse_regression"
dimension = 30
sparsity = 3

[model]
is = "DiagonalNet"

[method]
is = "DualFlow"
rtol = 1e-6

[probes.transition]
is = "grokking"
t = "$t"
train = "$norm_l1"
test = "$norm_l2"

[grid]
model.alpha = {logspace = [-2, 0, 3]}
"problem.samples" = [10, 20]
"""


@pytest.fixture
def written(tmp_path):
    def write(old="", new="", text=TOML):
        file = tmp_path / "scale.toml"
        assert old in text
        file.write_text(text.replace(old, new, 1) if old else text)
        return file

    return write


def test_a_toml_file_and_python_describe_the_same_cells(written):
    study = read_study(written())
    again = Study(**study.describe())
    assert study.name == "scale"
    assert study.dimensions == ("alpha", "samples", "seed")
    assert study.shape == (3, 2, 2)
    names = [cell.name for cell in cells_of(study, "v1")]
    assert names == [cell.name for cell in cells_of(again, "v1")]
    assert len(set(names)) == 12
    json.dumps(study.describe())


def test_a_cell_has_the_values_of_its_place_and_its_seed(written):
    study = read_study(written())
    cell = list(cells_of(study, "v1"))[7]  # index (1, 1, 1), the seed fastest
    assert cell.index == (1, 1, 1)
    assert cell.spec["model"] == {"is": "DiagonalNet", "alpha": pytest.approx(0.1)}
    assert cell.spec["problem"]["samples"] == 20
    assert cell.spec["problem"]["seed"] == 1
    assert "seed" not in cell.spec["method"]  # DualFlow takes none


def test_the_name_follows_from_everything(written):
    study = read_study(written())
    first = next(cells_of(study, "v1")).name
    assert next(cells_of(study, "v2")).name != first
    for old, new in (("rtol = 1e-6", "rtol = 1e-7"), ('["test_error"]', '["norm_l1"]')):
        assert next(cells_of(read_study(written(old, new)), "v1")).name != first
    # labels and titles are no part of a cell
    assert next(cells_of(read_study(written("scale and", "scale, and")), "v1")).name == first


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("final", "finla", r"scale\.toml: unknown key 'finla'; did you mean final"),
        ("sparsity", "sparsty", r"unknown key in problem 'sparsty'; did you mean .*sparsity"),
        ("model.alpha", "model.alhpa", r"unknown key in model 'alhpa'; did you mean alpha"),
        ("model.alpha", "modle.alpha", r"unknown part in grid key 'modle.alpha': 'modle'"),
        ("model.alpha", "model", r"grid\.model must name the parameter it sets"),
        ("DualFlow", "DaulFlow", r"unknown name in method\.is 'DaulFlow'; did you mean DualFlow"),
        (
            "DualFlow",
            "os:system",
            r"name in method\.is 'os:system'; .*public_names.. holds them$",
        ),
        (
            "DualFlow",
            "x" * 5000,
            r"unknown name in method\.is 'x{79}; .*public_names.. holds them$",
        ),
        ('"DualFlow"', "7", r"method\.is must be a public name of penchant, got 7"),
        ('is = "DualFlow"\nrtol = 1e-6', 'is = "L1"', r"method\.is names L1, which cannot train"),
        ("sparsity = 3", "sparsity = 300", r"scale\.toml: \[problem\]: .*300"),
        ("rtol = 1e-6", "rtol = -1.0", r"scale\.toml: \[method\]: .*-1"),
        ("[10, 20]", "[10, 0]", r"\[problem\] at problem\.samples = 0: .*got 0"),
        ("[10, 20]", "[10, 10]", r"grid\.problem\.samples names 10 more than once"),
        ("[10, 20]", "[]", r"grid\.problem\.samples must not be empty"),
        ("[10, 20]", '[10, "20"]', r"grid\.problem\.samples mixes numbers"),
        ("[10, 20]", "[10, nan]", r"grid\.problem\.samples must be finite, got nan"),
        ("[10, 20]", "20", r"grid\.problem\.samples must be a list of values or one of"),
        (
            "logspace",
            "logspaces",
            r"unknown key in grid\.model\.alpha 'logspaces'",
        ),
        ("[-2, 0, 3]", "[-2, 0]", r"grid\.model\.alpha\.logspace must be \[first, last, count\]"),
        ("[-2, 0, 3]", "[-2, 0, 0]", r"count must be at least 1, got 0"),
        ("logspace = [-2", "geomspace = [-2", r"geomspace needs ends > 0"),
        ("seeds = 2", "seeds = 0", r"seeds must be at least 1, got 0"),
        ("seeds = 2", "seeds = [1, 1]", r"seeds must be different whole numbers"),
        ("sparsity = 3", "sparsity = 3\nseed = 4", r"no part takes a seed"),
        ('["test_error"]', '"test_error"', r"final must be a list of names"),
        ('["test_error"]', '["alpha"]', r"'alpha' names two results or axes"),
        ('t = "$t"\n', "", r"probes\.transition lacks 't', which grokking needs"),
        ('[model]\nis = "DiagonalNet"\n', "", r"model is missing"),
        ("title =", 'name = "a/b"\ntitle =', r"name must be letters"),
        ("title =", "title", r"scale\.toml is not TOML"),
    ],
)
def test_a_wrong_description_is_refused_with_file_and_key(written, old, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_study(written(old, new))


def test_spaces_are_numpy_s(written):
    study = Study(
        name="spaces",
        function="study_cells:plain",
        grid={"a": {"geomspace": [1, 100, 7], "round": True}, "b": np.linspace(0, 1, 3)},
    )
    assert study.axes[0].values == (1, 2, 5, 10, 22, 46, 100)
    assert study.axes[1].values == (0.0, 0.5, 1.0)


def test_an_axis_may_set_an_argument_of_a_probe(written):
    study = read_study(written("[grid]", "[grid]\nprobes.transition.level = [0.5, 0.9]"))
    assert study.dimensions == ("level", "alpha", "samples", "seed")
    first = next(cells_of(study, "v1"))
    assert first.spec["probes"]["transition"]["level"] == 0.5
    with pytest.raises(ValueError, match=r"unknown key in probes\.transition 'levle'"):
        read_study(written("[grid]", "[grid]\nprobes.transition.levle = [0.5]"))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("stop = 3.0", r"stop must be a table, got 3\.0"),
        ('stop = {is = "Tim", t = 1.0}', r"unknown name in stop\.is 'Tim'; did you mean .*Time"),
        ('stop = {is = "Time", t = -1.0}', r"\[stop\]: Time: t must be > 0, got -1"),
        ('stop = [{is = "Time", t = 1.0}, {is = "L1"}]', r"\[stop\]: study: stop must be a rule"),
        ('record = {is = "Time", t = 1.0}', r"\[record\]: study: record must be LogSpaced"),
        ('record = {is = "LogSpaced", per_decad = 3}', r"unknown key in record 'per_decad'"),
        ('penalty = {is = "L2", time = 0.1}', r"unknown key in penalty 'time'"),
    ],
)
def test_wrong_rules_are_refused_with_file_and_key(written, lines, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_study(written(text=lines + "\n" + TOML))


def test_rules_can_be_axes(written):
    text = 'stop = {is = "Interpolated"}\n' + TOML.replace(
        '"problem.samples" = [10, 20]', "problem.samples = [10]\nstop.relative = [1e-3, 1e-6]"
    )
    study = read_study(written(text=text))
    assert study.dimensions == ("alpha", "samples", "relative", "seed")
    found = [cell.spec["stop"]["relative"] for cell in cells_of(study, "v1")]
    assert set(found) == {1e-3, 1e-6}
    several = text.replace('{is = "Interpolated"}', '[{is = "Interpolated"}]')
    with pytest.raises(ValueError, match=r"grid\.stop\.relative needs one table \[stop\]"):
        read_study(written(text=several))


def test_two_axes_with_one_last_name_get_long_names():
    parts = {"problem": {"is": "sparse_regression", "dimension": 30, "sparsity": 3, "seed": 0},
             "method": {"is": "DualFlow"}, "final": ["norm_l1"]}  # fmt: skip
    study = Study(
        name="two",
        model={"is": "DiagonalNet", "alpha": 0.1},
        grid={"model.depth": [2, 3], "problem.seed": [0, 1], "problem.samples": [9]},
        **parts,
    )
    assert study.dimensions == ("depth", "problem_seed", "samples")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"function": "study_cells"}, 'must read "package.module:function"'),
        ({"function": "study_cells:nothing"}, "has no function 'nothing'"),
        ({"function": "no_such_module:f"}, "cannot be imported"),
        ({"function": lambda a: {}}, "must be defined at the top of a module"),
        ({"grid": {"c": [1]}}, "unknown key in grid 'c'"),
        ({"grid": {}}, "grid lacks 'a'"),
        ({"arguments": {"a": 1.0}}, "'a' is both an argument and an axis"),
        ({"arguments": {"b": float("nan")}}, "arguments must hold finite numbers"),
        ({"final": ["loss"]}, "give a function or final, not both"),
        ({"stop": {"is": "Time", "t": 1.0}}, "give a function or stop, not both"),
        ({"dims": {"curve": ["a"]}}, "dims.curve must not repeat an axis"),
    ],
)
def test_a_wrong_function_study_is_refused(given, sentence):
    right = {"name": "f", "function": "study_cells:plain", "grid": {"a": [1.0]}}
    Study(**right)
    with pytest.raises(ValueError, match=sentence):
        Study(**{**right, **given})


def test_a_python_file_makes_a_study(tmp_path, monkeypatch):
    file = tmp_path / "sweep_in_python.py"
    file.write_text(
        "from penchant.lab.studies.study import Study\n"
        "def cell(a):\n    return {'b': 2 * a}\n"
        "sweep = Study(name='sweep', function=cell, grid={'a': [1, 2]})\n"
    )
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    assert read_study(file).function == "sweep_in_python:cell"
    with pytest.raises(ValueError, match="there is no study file"):
        read_study(tmp_path / "absent.toml")
    (tmp_path / "study.yaml").write_text("")
    with pytest.raises(ValueError, match=r"is a \.toml or a \.py file"):
        read_study(tmp_path / "study.yaml")


# --- draw ------------------------------------------------------------------------------------


def with_draw(**draw):
    given = {"x": "alpha", "y": "samples", "colour": "test_error",
             "contours": {"test_error": 0.1, "norm_l1": 3}, "range": [0.1, 1],
             "log": True}  # fmt: skip
    return Study(
        name="drawn",
        problem={"is": "sparse_regression", "dimension": 30, "sparsity": 3, "seed": 0},
        model={"is": "DiagonalNet"},
        method={"is": "DualFlow"},
        final=["test_error"],
        grid={"model.alpha": [0.1, 1.0], "problem.samples": [10, 20]},
        draw={**given, **draw},
    )


def test_draw_is_described_but_is_no_part_of_a_cell():
    study, plain = with_draw(), dataclasses.replace(with_draw(), draw={})
    assert study.describe()["draw"]["contours"] == {"test_error": 0.1, "norm_l1": 3}
    assert list(study.describe()["draw"]["contours"]) == ["test_error", "norm_l1"]  # measured first
    assert "draw" not in plain.describe()
    assert Study(**json.loads(json.dumps(study.describe()))).draw == study.draw
    names = [cell.name for cell in cells_of(study, "v1")]
    assert names == [cell.name for cell in cells_of(plain, "v1")]
    other = dataclasses.replace(study, final=("norm_l1",))
    assert names != [cell.name for cell in cells_of(other, "v1")]


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        ({"color": "loss"}, "unknown key in draw 'color'; did you mean colour"),
        ({"x": "alhpa"}, r"unknown axis in draw\.x 'alhpa'; did you mean alpha"),
        ({"x": "model.alpha"}, r"unknown axis in draw\.x 'model\.alpha'; did you mean alpha"),
        ({"y": "seed"}, r"unknown axis in draw\.y 'seed'"),
        ({"y": 3}, r"draw\.y must be the name of an axis, got 3"),
        ({"y": "alpha"}, r"draw\.x and draw\.y are both 'alpha'; name two axes"),
        ({"colour": ["a"]}, r"draw\.colour must be a variable's name, got \['a'\]"),
        ({"contours": 0.5}, r"draw\.contours must be a table such as \{excess = 0\.5\}, got 0\.5"),
        ({"contours": {"a": "b"}}, r"draw\.contours\.a must be a finite number, got 'b'"),
        ({"range": [1]}, r"draw\.range must be \[low, high\], got \[1\]"),
        ({"range": [1, "2"]}, r"draw\.range must be a finite number, got '2'"),
        ({"range": [0, 1]}, r"draw\.range must have 0 < low < high, as log is true, got \[0, 1\]"),
        ({"range": [2, 1], "log": False}, r"draw\.range must have low < high, got \[2, 1\]"),
        ({"log": 1}, r"draw\.log must be true or false, got 1"),
    ],
)
def test_a_wrong_draw_table_is_refused(draw, sentence):
    with_draw()
    with pytest.raises(ValueError, match=f"^Study: {sentence}"):
        with_draw(**draw)


def test_draw_must_be_a_table_and_have_axes():
    with pytest.raises(ValueError, match="draw must be a table, got 'alpha'"):
        dataclasses.replace(with_draw(), draw="alpha")
    with pytest.raises(ValueError, match=r"draw\.x must name an axis, but the grid has none"):
        Study(name="one", function="study_cells:plain", arguments={"a": 1.0}, draw={"x": "a"})


# --- forms -----------------------------------------------------------------------------------

FORMS = """
[forms.paper]
seeds = [3, 4, 5]
method.rtol = 1e-9
draw.log = true

[forms.paper.model]
is = "DiagonalNet"
depth = 3

[forms.paper.grid]
"model.alpha" = {geomspace = [1e-3, 1, 7]}

[forms.large.problem]
dimension = 50
"""
FORMED = TOML.replace("[grid]", '[draw]\nx = "alpha"\n\n[grid]') + FORMS


def test_a_form_replaces_keys_table_by_table(written):
    quick, paper = (read_study(written(text=FORMED), form) for form in ("quick", "paper"))
    assert (quick.name, paper.name) == ("scale", "scale-paper")
    plain = read_study(written())
    assert [c.name for c in cells_of(quick, "v")] == [c.name for c in cells_of(plain, "v")]
    assert paper.shape == (7, 2, 3)  # one axis replaced as a whole, though nested in the file
    assert paper.axes[0].values[0] == pytest.approx(1e-3)
    assert paper.seed_values == (3, 4, 5)
    assert paper.method == {"is": "DualFlow", "rtol": 1e-9}  # merged: it does not say what it is
    assert paper.model == {"is": "DiagonalNet", "depth": 3}
    assert paper.draw == {"x": "alpha", "log": True}
    assert paper.problem == quick.problem
    assert read_study(written(text=FORMED), "large").problem["dimension"] == 50


def test_a_table_that_says_what_it_is_replaces_the_whole(written):
    text = TOML + '\n[forms.other.method]\nis = "ParameterFlow"\nrtol = 1e-5\n'
    assert read_study(written(text=text), "other").method == {"is": "ParameterFlow", "rtol": 1e-5}


@pytest.mark.parametrize(
    ("old", "new", "form", "sentence"),
    [
        ("", "", "papre", r"scale\.toml: unknown form 'papre'; did you mean .*paper"),
        ("", "", "xyz", r"scale\.toml: unknown form 'xyz'; known: quick, paper, large"),
        ("seeds = [3", "sedes = [3", "quick", r"unknown key in forms\.paper 'sedes'; .*seeds"),
        ("seeds = [3", 'name = "a"\nseeds = [3', "quick", r"unknown key in forms\.paper 'name'"),
        ("[forms.paper]", "[forms.quick]", "quick", r"forms\.quick is the file itself"),
        ("[forms.paper]", '[forms."a/b"]', "quick", r"a form must be a short plain word"),
        (FORMS, "[forms]\npaper = 3\n", "quick", r"forms\.paper must be a table, got 3"),
        ("[forms.paper]", "[form.paper]", "quick", r"unknown key 'form'; did you mean .*forms"),
        ("[forms.paper]\nseeds = [3, 4, 5]", "[forms.paper]\nseeds = 0", "paper",
         r"scale\.toml, form paper: seeds must be at least 1"),
    ],
)  # fmt: skip
def test_a_wrong_form_is_refused(written, old, new, form, sentence):
    read_study(written(text=FORMED), "paper")
    with pytest.raises(ValueError, match=sentence):
        read_study(written(old, new, FORMED), form)


def test_forms_must_hold_tables_and_python_has_none(written, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"forms must hold tables such as \[forms\.paper\], got 3"):
        read_study(written("title", "forms = 3\ntitle"))
    (tmp_path / "formless.py").write_text("")
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    with pytest.raises(ValueError, match=r"formless\.py \(forms are for TOML\): unknown form 'p'"):
        read_study(tmp_path / "formless.py", "p")


# --- presets ---------------------------------------------------------------------------------


@pytest.fixture
def preset_folder(tmp_path, monkeypatch):
    folder = tmp_path / "presets"
    folder.mkdir()
    (folder / "W-scale.toml").write_text(FORMED)
    paper = types.SimpleNamespace(tables={"W-scale": folder / "W-scale.toml"})
    monkeypatch.setattr(reading, "papers", lambda: (paper,))
    return paper.tables


def test_presets_are_read_by_name(preset_folder, tmp_path):
    assert read_study("w-SCALE").name == "W-scale"
    assert read_study("W-scale", "paper").name == "W-scale-paper"
    found = reading.named_studies(Registry())
    assert found == {"W-scale": ("scale and samples", ("quick", "paper", "large"))}
    with pytest.raises(ValueError, match="run: unknown study 'W-scael'; did you mean W-scale"):
        read_study("W-scael")
    with pytest.raises(ValueError, match="run: unknown study '777'; known: "):
        read_study("777")


def test_penchant_list_names_the_presets(preset_folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printed = penchant_command("list")[1]
    assert re.search(r"W-scale +scale and samples +\[quick, paper, large\]", printed)


def test_penchant_run_takes_a_preset_and_its_form(preset_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = 'function = "study_cells:plain"\ngrid.a = [1.0]\n[forms.two]\ngrid.a = [1.0, 2.0]\n'
    preset_folder["small"] = tmp_path / "presets" / "small.toml"
    preset_folder["small"].write_text(small)
    run = functools.partial(penchant_command, "run")
    code, printed = run("W-scale", "--size", "large", "--dry")
    assert code == 0
    assert "W-scale-large: 12 cells (alpha 3 x samples 2 x seed 2), 0 finished" in printed
    assert not (tmp_path / "penchant-studies").exists()
    code, printed = run("small", "--size", "two", "--engine", "here")
    assert (code, "small-two: 2 cells, 2 computed now, 0 failed" in printed) == (0, True)
    assert load("penchant-studies/small-two.nc").attrs["command"] == "penchant run small --size two"
    code, printed = run("W-scale", "--size", "papre")
    assert (code, "paper?" in printed) == (2, True)
    code, printed = run("W-skale")
    assert (code, "did you mean W-scale" in printed) == (2, True)
    code, printed = run()
    assert (code, "or one of `penchant list`" in printed) == (2, True)


HOSTILE = {
    "a study in a study": (
        '[stop]\nis = "Near"\ndegrees = 1.0\ndirection = {is = "run",'
        ' study = {is = "Study", name = "x", function = "os:system",'
        ' arguments = {command = "touch owned"}}}',
        r"stop\.direction\.is names run",
    ),
    "a file that is read": ('[stop]\nis = "load"\nfile = "x"', "names load; a table may name"),
    "claims": ('[record]\nis = "verify"', "names verify; a table may name"),
}


@pytest.mark.parametrize("line", HOSTILE)
def test_a_table_names_nothing_but_what_computes(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    text, sentence = HOSTILE[line]
    Path("scale.toml").write_text(
        '[problem]\nis = "sparse_regression"\nsamples = 4\ndimension = 8\nsparsity = 1\n'
        f'[model]\nis = "DiagonalNet"\nalpha = 1.0\n[method]\nis = "DualFlow"\n{text}\n'
        '[probes.end]\nis = "angle"\na = "$path.predictor"\nb = "$problem.truth"\n'
    )
    with pytest.raises(ValueError, match=sentence):
        read_study("scale.toml")
    assert [file.name for file in tmp_path.iterdir()] == ["scale.toml"]


def test_a_probe_that_writes_is_refused(written):
    text = TOML + '\n[probes.theft]\nis = "save"\ndataset = "$path.dataset"\nfile = "victim.txt"\n'
    with pytest.raises(ValueError, match=r"probes\.theft\.is names save"):
        read_study(written(text=text))


def test_a_method_is_no_value_of_a_probe(written):
    from penchant.lab.studies.parts import DescriptionError, resolved

    scope = {"path": Path("here")}
    assert resolved("probes.p", "$path.name", scope) == "here"
    with pytest.raises(DescriptionError, match="is a method, not a value"):
        resolved("probes.p", "$path.unlink", scope)


def test_a_function_of_a_toml_file_needs_trust(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "mine_alone.py").write_text(
        "open(__file__ + '.ran', 'w').close()\ndef cell(a):\n    return {'b': a}\n"
    )
    file = tmp_path / "mine.toml"
    file.write_text('function = "mine_alone:cell"\ngrid.a = [1.0]\n')
    with pytest.raises(ValueError, match=r"the study runs the code of .*; if you trust it"):
        read_study(file)
    assert not (tmp_path / "mine_alone.py.ran").exists()
    requests = []
    assert read_study(file, trust=lambda *given: requests.append(given) or True).name == "mine"
    assert requests == [(file.resolve(), "mine_alone:cell")]
    assert (tmp_path / "mine_alone.py.ran").exists()

"""What every figure must pass: data that name themselves and survive the disk, a drawing that says
what it is."""

import json

import tacit.store
from tacit.figures.registry import figures


def assert_data_speak(id, dataset, folder, constructed):
    """Names and units everywhere, the preset's keys, the word `constructed`; whole after a save."""
    for name, variable in dataset.variables.items():
        assert variable.attrs.get("long_name"), (id, name)
        assert variable.attrs.get("units"), (id, name)
    keys = json.loads(dataset.attrs["parameters"]).keys()
    assert keys == figures()[id].presets["quick"].keys()
    assert constructed in dataset.attrs["constructed"]
    tacit.store.save(dataset, folder / f"{id}.nc")
    assert tacit.store.load(folder / f"{id}.nc").equals(dataset)


def assert_captioned(id, picture):
    """The registered title, source and constructed parameters, and a legend."""
    assert picture.get_suptitle().replace("\n", " ") == figures()[id].title
    caption = picture._supxlabel.get_text().replace("\n", " ")
    assert figures()[id].source in caption
    assert figures()[id].constructed in caption
    assert any(axes.get_legend() for axes in picture.axes)


def assert_axes_named(picture):
    for axes in picture.axes:
        if axes.axison:
            assert axes.get_xlabel()
            assert axes.get_ylabel()

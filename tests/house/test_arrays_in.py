"""Arrays of other libraries: taken where they are arrays, refused by a sentence where not.

`test_wrong_arrays.py` has masked, sparse and labelled arrays for every function.
"""

import numpy as np
import pandas
import pytest
import xarray

import penchant

X = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])
Y = np.array([1.0, 2.0])


def solved(X, y=Y):
    return penchant.interpolate(X, y, penchant.L2()).beta


def test_tensors_are_taken_detached():
    torch = pytest.importorskip("torch")
    plain = torch.tensor(X)
    assert np.array_equal(solved(plain.clone().requires_grad_()), solved(X))
    halved = plain.to(torch.bfloat16)
    assert np.array_equal(solved(halved), solved(X))  # these numbers fit into eight bits
    with pytest.raises(ValueError, match=r"X is a sparse tensor; give X\.to_dense\(\)"):
        solved(plain.to_sparse())
    assert np.array_equal(solved(torch.tensor(-1j * X).conj().imag), solved(X))  # a negated view
    assert np.array_equal(solved(plain.to(torch.float8_e4m3fn)), solved(X))
    with pytest.raises(ValueError, match=r"X must be an array of numbers, got Tensor .*meta"):
        solved(plain.to("meta"))
    with pytest.raises(ValueError, match=r"X must be an array of numbers, got list .*grad"):
        solved([[torch.tensor(v, requires_grad=True) for v in row] for row in X])


def test_labelled_arrays_are_taken_and_tables_that_are_none_are_refused():
    assert np.array_equal(solved(pandas.DataFrame(X), pandas.Series(Y)), solved(X))
    with pytest.raises(ValueError, match="interpolate: X must be an array of numbers, got Dataset"):
        solved(xarray.Dataset({"a": xarray.DataArray(X)}))

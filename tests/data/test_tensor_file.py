"""Files of arrays: what safetensors writes we read, what we write it reads, and damage is named."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.data.tensor_file import data_chunks, header, read_arrays, read_layout, specs_of

ARRAYS = {
    "image": np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
    "depth": np.linspace(0, 1, 8, dtype=np.float32).reshape(2, 4),
    "half": np.linspace(-1, 1, 3, dtype=np.float16),
    "ids": np.array([[65535, 1]], np.uint16),
    "normals": np.array([-127, 127], np.int8),
    "valid": np.array([True, False]),
    "seed": np.asarray(2**62, np.int64),
    "empty": np.empty((0, 3), np.float32),
}


def write(path, arrays=ARRAYS, notes=None):
    path.write_bytes(b"".join([header(specs_of(arrays), notes or {}), *data_chunks(arrays)]))
    return path


def assert_equal(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_safetensors_reads_what_we_write(tmp_path):
    path = write(tmp_path / "a.safetensors", notes={"first": "0", "b": "ü"})
    assert_equal(safetensors.numpy.load_file(path), ARRAYS)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"first": "0", "b": "ü"}


def test_we_read_what_safetensors_writes(tmp_path):
    safetensors.numpy.save_file(ARRAYS, tmp_path / "a.safetensors", {"note": "x"})
    assert_equal(read_arrays(tmp_path / "a.safetensors"), ARRAYS)
    assert read_layout(tmp_path / "a.safetensors").notes == {"note": "x"}


def test_the_bytes_do_not_depend_on_order_strides_or_byte_order(tmp_path):
    other = dict(reversed(ARRAYS.items()))
    other["depth"] = np.asfortranarray(ARRAYS["depth"]).astype(">f4")
    first = write(tmp_path / "a", notes={"x": "1", "y": "2"}).read_bytes()
    assert write(tmp_path / "b", other, {"y": "2", "x": "1"}).read_bytes() == first


def test_arrays_are_aligned(tmp_path):
    layout = read_layout(write(tmp_path / "a"))
    assert min(layout.offsets.values()) % 64 == 0
    assert all(layout.offsets[name] % layout.specs[name].dtype.itemsize == 0 for name in layout.specs)


def test_types_that_cannot_be_stored():
    with pytest.raises(InputError, match=r"array 'z': type complex128 cannot be stored"):
        header(specs_of({"z": np.zeros(1, complex)}), {})


def header_only(fields):
    text = json.dumps(fields).encode()
    return len(text).to_bytes(8, "little") + text


ONE = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
TWICE = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{}}'
DAMAGE = {
    "empty": (b"", "does not start with a header"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(99), "does not start with a header"),
    "short header": ((500).to_bytes(8, "little") + b"{", "header is cut short"),
    "text header": ((4).to_bytes(8, "little") + b"{a:b", "header is not JSON"),
    "list header": ((2).to_bytes(8, "little") + b"[]", "header is no object"),
    "unknown type": (header_only({"a": {**ONE, "dtype": "F4"}}) + b"1234", "does not describe arrays"),
    "no shape": (header_only({"a": {"dtype": "U8"}}) + b"1234", "does not describe arrays"),
    "deep header": ((9000).to_bytes(8, "little") + b"[" * 9000, "header is not JSON"),
    "twice": (len(TWICE).to_bytes(8, "little") + TWICE + b"1234", "header is not JSON"),
    "text as a side": (header_only({"a": {**ONE, "shape": ["4"]}}) + b"1234", "does not describe arrays"),
    "half a side": (header_only({"a": {**ONE, "shape": [4.5]}}) + b"1234", "does not describe arrays"),
    "no object": (header_only({"a": 3}) + b"1234", "does not describe arrays"),
    "no place": (header_only({"a": {**ONE, "data_offsets": []}}) + b"1234", "does not describe arrays"),
    "many sides": (header_only({"a": {**ONE, "shape": [1] * 99}}) + b"1", "does not describe arrays"),
    "giant": (header_only({"a": {**ONE, "shape": [10**30]}}) + b"1", "does not describe arrays"),
    "empty giant": (header_only({"a": {**ONE, "shape": [0, 2**39, 2**39]}}), "does not describe arrays"),
    "notes": (header_only({"__metadata__": [1], "a": ONE}) + b"1234", "notes are not texts"),
    "notes of numbers": (header_only({"__metadata__": {"sha256": 1}}), "notes are not texts"),
    "a gap": (header_only({"a": {**ONE, "data_offsets": [1, 5]}}) + b"12345", "wrong about array 'a'"),
    "negative": (header_only({"a": {**ONE, "shape": [-2, -2]}}) + b"1234", "wrong about array 'a'"),
    "overlap": (header_only({"a": ONE, "b": ONE}) + b"1234", "wrong about array"),
    "cut short": (header_only({"a": ONE}) + b"123", "cut short"),
    "too long": (header_only({"a": ONE}) + b"12345", "too long"),
}


@pytest.mark.parametrize(("content", "text"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named(tmp_path, content, text):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"a\.safetensors: .*{text}"):
        read_layout(tmp_path / "a.safetensors")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileFormatError, match="gone: no such file"):
        read_layout(tmp_path / "gone")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is not a regular file"):
        read_layout(tmp_path / "pipe")

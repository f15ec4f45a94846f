"""MATLAB 7.3 files may name other files, links and code; only what lies in the file itself is read."""

import os
import subprocess
import sys
import zlib

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError
from primaldepth.io import read_depth

h5py = pytest.importorskip("h5py")

DEPTH = np.arange(1, 13, dtype=np.float64).reshape(3, 4)
SECRET = np.full((4, 3), 7.0)
UNCHECKED = """
import sys
from primaldepth.io.formats import isolated_program as program

program._check_dataset = lambda *request: None
program.main(sys.argv[1:])
"""
LIMITS = '{"memory": 268435456, "seconds": 4, "decoded": 96, "members": 1000, "parts": 1000}'


@pytest.fixture
def folder(tmp_path):
    """A folder with two files that no one asks to read: raw numbers, and an HDF5 file of its own."""
    SECRET.tofile(tmp_path / "secret.raw")
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["depth"] = SECRET
    return tmp_path


def external(folder, file):
    shape, place = SECRET.shape, [(str(folder / "secret.raw"), 0, SECRET.nbytes)]
    file.create_dataset("depth", shape, "f8", external=place)


def virtual(folder, file):
    layout = h5py.VirtualLayout(SECRET.shape, "f8")
    layout[:] = h5py.VirtualSource(folder / "secret.h5", "depth", SECRET.shape)
    file.create_virtual_dataset("depth", layout)


def external_link(folder, file):
    file["depth"] = h5py.ExternalLink(folder / "secret.h5", "depth")


def soft_link(folder, file):
    file["other/depth"] = SECRET
    file["depth"] = h5py.SoftLink("/other/depth")


def made(folder, make):
    path = folder / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        make(folder, file)
    return path


def refused(path, advice):
    with pytest.raises(FileFormatError, match=advice) as caught:
        read_depth(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_map_is_read(folder):
    path = made(folder, lambda _, file: file.create_dataset("depth", data=DEPTH.T, compression="gzip"))
    np.testing.assert_array_equal(read_depth(path).values, DEPTH)


@pytest.mark.parametrize("make", [external, virtual])
def test_numbers_in_another_file_are_refused(folder, make):
    refused(made(folder, make), "stored in another file; save the map itself")


@pytest.mark.parametrize("make", [external_link, soft_link])
def test_links_are_refused(folder, make):
    refused(made(folder, make), "'depth' is a link to what lies elsewhere; save the map itself")


@pytest.mark.parametrize("make", [external, virtual])
def test_another_file_cannot_be_opened_even_if_nothing_were_checked(folder, make):
    path = made(folder, make)
    command = [sys.executable, "-c", UNCHECKED, str(os.getpid()), LIMITS, "hdf5", "read", "depth"]
    done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=False)
    assert SECRET.tobytes() not in done.stdout


def test_thousands_of_variables_are_refused(folder):
    def make(_, file):
        for index in range(1001):
            file[f"v{index}"] = 1.0

    refused(made(folder, make), "1001 variables, more than the limit of 1000")


def low_level(file, chunk, deflates, shape=(4, 3)):
    """A dataset in chunks that are deflated several times over; h5py's own interface allows one filter."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk(chunk)
    for _ in range(deflates):
        plan.set_deflate(9)
    space = h5py.h5s.create_simple(shape, (h5py.h5s.UNLIMITED,) * 2)
    return h5py.h5d.create(file.id, b"depth", h5py.h5t.IEEE_F64LE, space, plan)


def test_a_chunk_that_is_deflated_twice_is_refused(folder):
    """Two streams, one in the other, expand a million times."""
    path = made(folder, lambda _, file: low_level(file, (4, 3), 2))
    refused(path, r"packed by the filters \[1, 1\]")


def test_chunks_far_larger_than_the_array_are_refused(folder):
    path = made(folder, lambda _, file: low_level(file, (4096, 8192), 1))
    refused(path, "268435456 bytes in chunks for 96 of numbers")


def test_a_chunk_that_inflates_without_end_is_refused(folder):
    """HDF5 inflates a chunk to its end, whatever its size; the limit on memory ends that."""

    def make(_, file):
        dataset = h5py.Dataset(low_level(file, (4, 3), 1))
        dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(2**30), 9))

    refused(made(folder, make), "not readable")


def test_an_attribute_that_is_no_short_text_is_left_alone(folder):
    def make(_, file):
        file["depth"] = DEPTH.T
        file["depth"].attrs["MATLAB_class"] = np.zeros(4000, "f8")

    np.testing.assert_array_equal(read_depth(made(folder, make)).values, DEPTH)


def test_a_claim_that_the_file_cannot_hold_is_refused(folder):
    """Chunks that were never written are filled in by HDF5, at no cost to the file."""

    def make(_, file):
        file.create_dataset("depth", (16000, 16000), "f4", chunks=(1000, 1000), fillvalue=1.0)

    refused(made(folder, make), "claims 16000x16000 pixels, which .* bytes cannot hold|more than the limit")

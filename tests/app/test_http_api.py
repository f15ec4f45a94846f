"""The HTTP interface: formats, units, errors and what its description says."""

import concurrent.futures
import io
import json
from pathlib import Path

import numpy as np
import pytest
from malformed import depth_bytes, good_files, guide_bytes
from PIL import Image

import primaldepth
from primaldepth.app.response_formats import MEDIA_TYPES
from primaldepth.app.routes import FIELDS
from primaldepth.io import read_depth, read_guide
from primaldepth.io.depth_writing import encode_values
from primaldepth.samples import sample_files


def post(client, files=None, accept="image/png", **data):
    return client.post("/v1/upsample", files=files or good_files(), data=data, headers={"Accept": accept})


def encoded(values):
    return encode_values(Path("d.png"), values, values > 0, "mm")


def read_back(answer, tmp_path, suffix, unit=None):
    path = tmp_path / f"answer{suffix}"
    path.write_bytes(answer.content)
    return read_depth(path, unit=unit)


@pytest.mark.parametrize(
    ("accept", "suffix", "step"),
    [("image/png", ".png", 5.1e-4), ("image/x-exr", ".exr", 1e-6), ("application/x-npz", ".npz", 1e-6)],
)
def test_the_answer_is_what_python_gives(service, tmp_path, accept, suffix, step):
    sample = sample_files()
    files = {"depth": ("d", sample.depth.read_bytes()), "guide": ("g", sample.guide.read_bytes())}
    answer = post(service, files, accept, method="nearest")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == accept
    expected = primaldepth.upsample(sample.depth, sample.guide, method="nearest").depth.numpy()
    found = read_back(answer, tmp_path, suffix)
    assert found.values.shape == (480, 640)
    np.testing.assert_allclose(found.values, expected, atol=step)


def test_png_has_16_bits_and_more_than_256_levels(service):
    answer = post(service, method="bicubic")
    assert answer.content[24] == 16  # the bit depth in the header
    report = json.loads(answer.headers["primaldepth-report"])
    assert report["unit"] == "mm"
    assert report["output_size"] == [16, 12]


def test_a_unit_may_be_any_number_per_metre(service, tmp_path):
    answer = post(service, method="nearest", unit="4000")
    report = json.loads(answer.headers["primaldepth-report"])
    assert report["unit"] == "4000"
    assert report["rounded_off"] == 0
    median = np.median(read_back(answer, tmp_path, ".png", unit="4000").values)
    assert 0.25 <= median <= 0.5
    assert report["median_depth"] == pytest.approx(median, rel=0.2)
    refused = post(service, method="nearest", unit="0.00025")
    assert (refused.status_code, refused.json()["error"]["hint"]) == (
        422,
        "give the stored numbers per metre; 4000 if one stored number is 0.00025 m",
    )


def test_npz_tells_what_was_measured(service):
    values = np.full((6, 8), 2.0)
    values[:3] = np.nan
    stream = io.BytesIO()
    np.save(stream, values)
    files = good_files(depth=("d.npy", stream.getvalue()))
    answer = post(service, files, "application/x-npz", method="nearest")
    with np.load(io.BytesIO(answer.content)) as arrays:
        assert arrays["valid"].all()
        np.testing.assert_array_equal(arrays["measured"].any(axis=1), [False] * 6 + [True] * 6)


@pytest.mark.parametrize(
    ("output", "media_type", "magic"),
    [
        ("normals", "image/png", b"\x89PNG"),
        ("measured", "image/png", b"\x89PNG"),
        ("preview", "image/png", b"\x89PNG"),
        ("cloud", "application/x-ply", b"ply"),
        ("mesh", "model/gltf-binary", b"glTF"),
    ],
)
def test_every_output_can_be_the_answer(service, output, media_type, magic):
    sample = sample_files()
    files = {name: (name, getattr(sample, name).read_bytes()) for name in ("depth", "guide", "cameras")}
    answer = post(service, files, media_type, method="nearest", output=output)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type), answer.text[:300]
    assert answer.content.startswith(magic)
    assert f'filename="{output}.' in answer.headers["content-disposition"]
    assert json.loads(answer.headers["primaldepth-report"])["kind"] == "z"


@pytest.mark.parametrize(
    ("output", "accept", "message"),
    [
        ("normals", "image/png", "output: a map of normals needs the guide's camera"),
        ("sigma", "image/x-exr", "output: method 'nearest' does not say how far it may be off"),
    ],
)
def test_an_output_that_cannot_be_made_is_told_in_the_words_of_the_form(service, output, accept, message):
    answer = post(service, accept=accept, method="nearest", output=output)
    error = answer.json()["error"]
    assert (answer.status_code, error["message"]) == (422, message)
    assert "--" not in error["hint"]


def test_holes_can_be_kept(service, tmp_path):
    values = np.full((6, 8), 2.0)
    values[:3] = 0
    stream = io.BytesIO()
    np.save(stream, values)
    answer = post(service, good_files(depth=("d.npy", stream.getvalue())), method="nearest", holes="keep")
    found = read_back(answer, tmp_path, ".png")
    assert found.valid[6:].all()
    assert not found.valid[:6].any()


@pytest.mark.parametrize(("choice", "count"), [("drop", 1), ("keep", 0)])
def test_a_spike_is_a_hole_unless_it_is_kept(service, tmp_path, choice, count):
    values = np.full((32, 40), 2.0)
    values[2, 3] = 8.0
    stream = io.BytesIO()
    np.save(stream, values)
    files = good_files(depth=("d.npy", stream.getvalue()), guide=("g.png", guide_bytes(size=(80, 64))))
    answer = post(service, files, method="nearest", holes="keep", spikes=choice)
    assert json.loads(answer.headers["primaldepth-report"])["spikes"] == count
    assert (~read_back(answer, tmp_path, ".png").valid).sum() == 4 * count


def test_fields_that_do_not_exist_are_refused(service):
    form = service.get("/openapi.json").json()["components"]["schemas"]["Body_upsample_v1_upsample_post"]
    assert set(FIELDS) == set(form["properties"])
    answer = post(service, nosie="5", method="nearest")
    problem = answer.json()["error"]
    assert (answer.status_code, problem["code"]) == (422, "unknown_field")
    assert (problem["message"], problem["hint"]) == ("'nosie' is no field", "did you mean 'noise'?")


def test_text_in_place_of_a_file_is_told(service):
    answer = service.post("/v1/upsample", files={"guide": ("g.png", guide_bytes())}, data={"depth": "d.png"})
    problem = answer.json()["error"]
    assert (answer.status_code, problem["message"]) == (
        422,
        "depth: is text, expected a file; with curl: -F NAME=@FILE",
    )


def test_a_result_that_does_not_fit_blames_the_largest_number(service):
    values = np.full((6, 8), 1.3)
    values[:2] = 65.535
    answer = post(service, good_files(depth=("d.png", encoded(values))), method="bicubic")
    assert answer.status_code == 200
    said = " ".join(warnings(answer))
    assert "samples that hold 65535, the largest number of a 16-bit file: 16;" in said
    assert "estimates that are larger than the format can hold are holes: " in said


def warnings(answer):
    """Of an answer; its header is what any client and proxy can take."""
    header = answer.headers["primaldepth-report"]
    assert header.isascii()
    assert len(header) < 2000
    return json.loads(header)["warnings"]


def test_nothing_odd_is_no_warning(service):
    assert warnings(post(service, method="nearest")) == []


def test_a_number_of_many_digits_leaves_the_header_short(service):
    answer = post(service, method="nearest", noise="0" * 50_000 + "50")
    assert answer.status_code == 200
    assert warnings(answer) == []


def test_what_a_png_cannot_hold_is_told_in_the_words_of_the_interface(service):
    stream = io.BytesIO()
    np.save(stream, np.full((6, 8), 70.0))
    answer = post(service, good_files(depth=("d.npy", stream.getvalue())), method="nearest")
    assert answer.json()["error"]["message"].startswith("the result: 70000 does not fit PNG")
    assert "ask for image/x-exr or application/x-npz" in answer.json()["error"]["hint"]


def test_what_the_command_line_doubts_is_a_warning(service):
    stream = io.BytesIO()
    np.save(stream, np.full((6, 8), 1500.0))
    files = good_files(depth=("d.npy", stream.getvalue()), guide=("g.png", guide_bytes(size=(12, 16))))
    assert warnings(post(service, files, "image/x-exr", method="nearest")) == [
        "the median depth is 1500 m; if that is wrong, give the right 'unit', such as mm",
        "depth 8x6 and guide 12x16 have different aspect ratios; crop both to the same view, or give "
        "'cameras'",
    ]


@pytest.mark.parametrize("given", [{}, {"kind": "disparity"}])
def test_eight_bits_are_doubted_unless_their_meaning_is_given(service, given):
    stream = io.BytesIO()
    Image.fromarray(np.full((6, 8), 6, np.uint8)).save(stream, "PNG")
    answer = post(service, good_files(depth=("d.png", stream.getvalue())), method="nearest", **given)
    said = "8-bit numbers are taken as disparities; if they are distances, give 'unit'"
    assert warnings(answer) == ([] if given else [said])


def test_estimates_that_round_to_0_name_a_format_that_keeps_them(service):
    low = np.full((6, 8), 90.0)
    low[:, :2] = 0.3
    stream = io.BytesIO()
    np.save(stream, low)
    files = good_files(depth=("d.npy", stream.getvalue()))
    rounded = post(service, files, method="nearest", unit="disparity")
    assert warnings(rounded)[-1].endswith("48 pixels; accept image/x-exr or application/x-npz to keep them")
    kept = post(service, files, "image/x-exr", method="nearest", unit="disparity")
    assert "round to 0" not in str(warnings(kept))


CAMERA_INFO = b"""image_width: 16
image_height: 12
camera_matrix: {rows: 3, cols: 3, data: [15.0, 0.0, 7.5, 0.0, 15.0, 5.5, 0.0, 0.0, 1.0]}
distortion_model: plumb_bob
distortion_coefficients: {rows: 1, cols: 5, data: [0.0, 0.0, 0.0, 0.0, 0.0]}
"""


@pytest.mark.parametrize("name", ["camera_info.yaml", "cameras"])
def test_a_camera_info_is_the_same_camera_whatever_it_is_called(service, name):
    pytest.importorskip("yaml")
    camera = {"fx": 15.0, "fy": 15.0, "cx": 8.0, "cy": 6.0, "width": 16, "height": 12}
    as_json = good_files(cameras=("c.json", json.dumps({"guide": camera}).encode()))
    answers = [
        post(service, files, kind="radial", method="nearest")
        for files in (as_json, good_files(cameras=(name, CAMERA_INFO)))
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


def test_radial_depth_without_a_camera_asks_for_the_field(service):
    answer = post(service, kind="radial", method="nearest")
    assert (answer.status_code, answer.json()["error"]["hint"]) == (422, "give 'cameras'")


def test_confidence_cameras_and_kind_are_used(service):
    camera = {"fx": 15.0, "fy": 15.0, "cx": 8.0, "cy": 6.0, "width": 16, "height": 12}
    files = good_files(
        confidence=("c.png", depth_bytes()), cameras=("c.json", json.dumps({"guide": camera}).encode())
    )
    answer = post(service, files, kind="radial", noise="12.5", method="nearest")
    assert answer.status_code == 200
    report = json.loads(answer.headers["primaldepth-report"])
    assert report["kind"] == "z"
    assert report["noise_sigma"] == pytest.approx(0.0125)


def test_a_result_that_does_not_fit_is_refused_with_a_hint(service):
    stream = io.BytesIO()
    np.save(stream, np.full((6, 8), 100.0))
    files = good_files(depth=("d.npy", stream.getvalue()))
    answer = post(service, files, "image/png", method="nearest")
    assert answer.status_code == 422
    assert "exr" in answer.json()["error"]["hint"]
    assert post(service, files, "image/x-exr", method="nearest").status_code == 200


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_files_in_each_other_s_field_are_told_by_field(service, form):
    files = {"depth": ("d", guide_bytes(form)), "guide": ("g", depth_bytes())}
    error = post(service, files, method="nearest").json()["error"]
    assert error["code"] == "unreadable_file"
    assert error["hint"].endswith(", and put the depth map in the field 'depth', the image in 'guide'")
    assert "before" not in error["hint"]


def test_every_upload_is_gone_afterwards(service, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    root = service.app.state.workspace.root
    for files, status in ((good_files(), 200), (good_files(depth=("d", b"no")), 422)):
        assert post(service, files).status_code == status
        assert [path.name for path in root.iterdir()] == [".lock"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("accept", "found"),
    [
        ("*/*", "image/png"),
        ("image/*;q=0.5, application/x-npz", "application/x-npz"),
        ("text/html, image/x-exr;q=0.2", "image/x-exr"),
        ("image/png;q=0, */*;q=0.1", "image/png"),
    ],
)
def test_the_accept_header_picks_the_format(service, accept, found):
    assert post(service, accept=accept).headers["content-type"] == found


def test_methods_are_listed_and_one_is_the_default(service):
    rows = service.get("/v1/methods").json()
    assert [row["name"] for row in rows if row["default"]] == ["bilinear"]
    assert "nlh-l2" in [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("verb", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/upsample", 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("POST", "/v1/upsample", 422, "invalid_field"),
    ],
)
def test_errors_are_json_everywhere(service, verb, path, status, code):
    answer = service.request(verb, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    if status == 405:
        assert answer.headers["allow"]


def test_metrics_count_answers_and_computing(service):
    post(service, method="nearest")
    text = service.get("/metrics").text
    assert 'primaldepth_requests_total{route="/v1/upsample",status="200"}' in text
    assert 'primaldepth_compute_seconds_count{method="nearest"}' in text
    assert "primaldepth_queue_length 0.0" in text
    assert "process_resident_memory_bytes" in text


def test_the_description_documents_every_answer(service):
    paths = service.get("/openapi.json").json()["paths"]
    upsample = paths["/v1/upsample"]["post"]
    wanted = {"200", "400", "401", "403", "406", "408", "413", "421", "422", "429", "500", "503", "504"}
    assert set(upsample["responses"]) == wanted
    assert set(upsample["responses"]["200"]["content"]) == set(MEDIA_TYPES.values())
    for status in wanted - {"200"}:
        content = upsample["responses"][status]["content"]["application/json"]
        assert set(content["example"]["error"]) == {"code", "message", "hint"}
        assert content["schema"]["$ref"].endswith("ErrorBody")
    for name in ("/v1/methods", "/healthz", "/readyz", "/metrics"):
        assert "200" in paths[name]["get"]["responses"]


def test_equal_requests_in_one_batch_get_their_own_results(start):
    """Frames of one size are computed together; each answer is the one its request gets alone."""
    client = start(batch=8, queue=16)
    engine = client.app.state.engine
    levels = [1.0 + 0.1 * index for index in range(8)]

    def ask(level):
        stream = io.BytesIO()
        np.save(stream, np.full((6, 8), level))
        files = {"depth": ("d", stream.getvalue()), "guide": ("g", guide_bytes())}
        answer = post(client, files, "application/x-npz", method="nlh-l2", noise="0.01")
        with np.load(io.BytesIO(answer.content)) as arrays:
            return arrays["depth"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, levels))
    for level, depth in zip(levels, found, strict=True):
        np.testing.assert_allclose(depth, level, rtol=1e-4)
    assert engine.restarts == 0


def test_the_guide_is_read_as_files_are(tmp_path):
    """The shared sample of the fuzz test is a real image: otherwise the tests above refuse for its sake."""
    path = tmp_path / "g"
    path.write_bytes(guide_bytes())
    assert read_guide(path).shape == (12, 16, 3)

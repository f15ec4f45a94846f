"""Messages to clients: they name the field of a file, and quote nothing from it."""

from pathlib import Path

import pytest
from malformed import good_files, npy, zip_of

from primaldepth.app.problems import problem_of
from primaldepth.core.errors import FileFormatError, InputError

SECRET = "quartz-zebra-4711"  # noqa: S105 - a word to look for
FOLDER = Path("/tmp/uploads")  # noqa: S108 - only a name

FILES = {
    "words": {"cameras": f"{SECRET} and more\n".encode()},
    "keys": {"cameras": f'{{"guide": {{"{SECRET}": 1}}}}'.encode()},
    "values": {"cameras": f'{{"guide": "{SECRET}"}}'.encode()},
    "YAML": {"cameras": f"width: {SECRET}\nheight: 1\n".encode()},
    "numbers": {"cameras": b"47114711 0 1 0 -47114711 1 0 0 1"},
    "first bytes": {"depth": SECRET.encode()},
    "PFM scale": {"depth": f"Pf\n2 2\n{SECRET}\n".encode() + bytes(16)},
    "names of arrays": {"depth": zip_of({f"{SECRET}.npy": b"x", "b.npy": b"x"})},
    "type of an array": {"depth": npy((2, 2), bytes(32), SECRET)},
}


@pytest.mark.parametrize("case", FILES)
def test_no_message_quotes_a_file(service, case):
    [(field, content)] = FILES[case].items()
    answer = service.post("/v1/upsample", files=good_files(**{field: ("a", content)}), data={"kind": "z"})
    error = answer.json()["error"]
    assert answer.status_code == 422
    assert error["message"].startswith(f"{field}: ")
    assert "quartz" not in answer.text
    assert "4711" not in answer.text


@pytest.mark.parametrize(
    ("field", "found", "quoted", "message", "hint"),
    [
        ("depth", "is empty (0 bytes); copy it again", (), "depth: is empty (0 bytes)", "copy it again"),
        ("depth", "not readable ({}); copy it", ("a (b) 'c'; d",), "depth: not readable (...)", "copy it"),
        (
            "depth",
            "holds {}, {} but no 'depth'; save it",
            ("'a'", '"b\'c"'),
            "depth: holds ..., ... but no 'depth'",
            "save it",
        ),
        (
            "guide",
            "(2, 2); a guide is (H, W) or (H, W, 3)",
            (),
            "guide: (2, 2)",
            "a guide is (H, W) or (H, W, 3)",
        ),
        (
            "guide",
            "the camera's middle, the guide's side",
            (),
            "guide: the camera's middle, the guide's side",
            "",
        ),
    ],
)
def test_what_is_not_quoted_from_a_file_stays(field, found, quoted, message, hint):
    problem = problem_of(FileFormatError(FOLDER / field, found, quoted=quoted), FOLDER)
    assert (problem.message, problem.hint) == (message, hint)


def test_what_is_wrong_with_a_field_is_quoted():
    problem = problem_of(InputError("noise: 'furlong' is neither a number; give one"), FOLDER)
    assert problem.message == "noise: 'furlong' is neither a number"

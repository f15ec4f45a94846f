"""Documents of unknown origin: what is taken, and that every refusal is ours and comes before the work."""

import json

import pytest
import tomllib

from primaldepth.core.documents import Limits, check_values, parse_json, parse_toml
from primaldepth.core.errors import FileFormatError

PLAIN = {"a": [1, 2.5, None, True], "b": {"c": "ä\n", "": -3}}


def test_plain_values_come_back():
    assert parse_json(json.dumps(PLAIN), "here") == PLAIN
    assert parse_json(json.dumps(PLAIN).encode("utf-8-sig"), "here") == PLAIN
    text = 'a = [1, 2.5, """[[[""", \'{{\'] # [[[[\n[b]\nc."d.e" = 0x1f\n[[f]]\n'
    assert parse_toml(text, "here") == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested deeper than 32"),
        ('{"a":' * 33 + "1" + "}" * 33, "nested deeper than 32"),
        ("[" + "0," * 200_000 + "0]", "more than 131072 values"),
        ('"' + "a" * 2**20 + '"', "1048578 bytes, more than 1048576"),
        ("1" * 101, "a number of more than 100 characters"),
        ("1" * 5000, "a number of more than 100 characters"),
        ("0." + "1" * 100, "a number of more than 100 characters"),
        ("1e999", "'1e999' is no finite number"),
        ("[NaN]", "NaN is no finite number"),
        ("[-Infinity]", "-Infinity is no finite number"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ('{"a": 1, "\\u0061": 2}', "the key 'a' occurs twice"),
        ('["\\ud800"]', ".*surrogates not allowed"),
        ('{"\\udfff": 1}', ".*surrogates not allowed"),
        ("", "Expecting value"),
        ('{"a": 1} 2', "Extra data"),
        ('["a]', "Unterminated string"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(FileFormatError, match=rf"^file\.json: not a JSON document \({message}") as caught:
        parse_json(text, "file.json")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_json_in_another_encoding_is_refused(encoding):
    with pytest.raises(FileFormatError, match="codec can't decode"):
        parse_json('{"ä": 1}'.encode(encoding), "file.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5000, "nested deeper than 32"),
        ("a = " + "{b = " * 5000, "nested deeper than 32"),
        ("a" + ".a" * 100_000 + " = 1", "nested deeper than 32"),
        ("[a" + " . 'a'" * 100_000 + "]", "nested deeper than 32"),
        ("a = " + "1" * 5000, "Exceeds the limit"),
        ("a = 0x" + "f" * 200, "a number of more than 100 characters"),
        ("a = 1e999", "'1e999' is no finite number"),
        ("a = nan", "'nan' is no finite number"),
        ("a = -inf", "'-inf' is no finite number"),
        ("a = 1979-05-27", "a date is not taken"),
        ("a = 1\na = 2", "Cannot overwrite a value"),
        ('a = """[[', "Unterminated string"),
        ("a = 1 [", "Expected newline"),
    ],
)
def test_toml_that_is_refused(text, message):
    with pytest.raises(FileFormatError, match=rf"^file\.toml: not a TOML document \({message}"):
        parse_toml(text, "file.toml")


@pytest.mark.parametrize("value", [{1: 2}, (1,), b"", 1j, float("inf"), 10**100, [[[[1]]]]])
def test_values_of_other_parsers_are_checked(value):
    with pytest.raises(ValueError, match=r"taken|characters|deeper"):
        check_values(value, Limits(depth=3))


def test_a_string_of_brackets_is_not_nested():
    assert parse_json(json.dumps("[" * 1000 + '\\"{' * 1000), "here").startswith("[[")

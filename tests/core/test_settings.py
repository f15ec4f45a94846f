import pytest
from pydantic import ValidationError

from primaldepth.core.errors import InputError
from primaldepth.core.settings import Settings


class Example(Settings):
    iterations: int = 100
    sigma_v: float = 0.1


def test_defaults_and_given_values_meet():
    assert Example.parse({"iterations": 7}, "here").model_dump() == {"iterations": 7, "sigma_v": 0.1}


@pytest.mark.parametrize(("key", "nearest"), [("iteration", "iterations"), ("sigma_d", "sigma_v")])
def test_unknown_keys_name_the_nearest(key, nearest):
    with pytest.raises(InputError, match=f"^method 'x': unknown key '{key}'; did you mean '{nearest}'\\?$"):
        Example.parse({key: 1}, "method 'x'")


def test_keys_near_nothing_list_what_is_known():
    with pytest.raises(InputError, match="unknown key 'qqq'; known: iterations, sigma_v"):
        Example.parse({"qqq": 1}, "here")


def test_wrong_values_name_key_and_value():
    with pytest.raises(InputError, match=r"^here: 'iterations': .*integer.* \(found 'many'\)$"):
        Example.parse({"iterations": "many"}, "here")


def test_settings_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Example().iterations = 3

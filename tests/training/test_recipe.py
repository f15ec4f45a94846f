"""Recipes: what extends what, changes by --set, and errors that name the key."""

import os
from pathlib import Path

import pytest

import primaldepth
from primaldepth.core.errors import InputError
from primaldepth.networks.card import read_card
from primaldepth.training.recipe import StageRecipe, read_recipe

CONFIGS = Path(__file__).parents[2] / "configs"
WEIGHTS = Path(primaldepth.__file__).parent / "weights"
BASE = """
name = "base"
scale = 4
seed = 3

[net]
layers = 5
maps = 16

[[stages]]
part = "fcn"
steps = 10

[[stages]]
part = "joint"
steps = 20
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="recipe.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_recipes_we_ship_are_valid(path):
    found = read_recipe(path)
    assert found.name == path.stem
    assert all(stage.patch % found.scales[0] == 0 for stage in found.stages)


def plain(path, *changes):
    return read_recipe(CONFIGS / path, changes).model_dump()


def test_the_small_model_is_the_same_recipe_with_three_settings_changed():
    large, small = plain("pdn-any.toml"), plain("pdn-any-small.toml")
    net = {key for key in large["net"] if large["net"][key] != small["net"][key]}
    assert len(net) <= 3
    assert small["stages"][-1].pop("save_as") == "pdn-any-small"
    assert large["stages"][-1].pop("save_as") == "pdn-any"
    assert {key for key in large if large[key] != small[key]} == {"name", "net"}


def test_a_recipe_is_a_whole_lineage():
    """It starts from nothing, says which scenes to render, and watches real frames."""
    found = read_recipe(CONFIGS / "pdn-any.toml")
    assert found.start is None
    assert [stage.part for stage in found.stages] == ["fcn", "joint"]
    assert found.scenes
    for each in found.scenes:
        assert each.textures is None
        assert (each.meshes is None) == (each.scans == "none") == (not each.assets)
    assert found.validation.names == ("middlebury-2006", "noise-free", "aligned-holes", "real-holdout")
    assert found.net.samples


@pytest.mark.parametrize("scale", [2, 4, 8, 16])
@pytest.mark.parametrize("read", ["d", "s"])
def test_one_recipe_makes_all_networks_of_the_paper(scale, read):
    large = ("net.layers=15", *(f"stages.{n}.{each}" for n in (0, 1) for each in ("patch=192", "batch=16")))
    changes = (f"scale={scale}", f"net.input={read}", *(large if scale == 16 else ()))
    found = read_recipe(CONFIGS / "fcn-pdn.toml", changes)
    assert [stage.save_as for stage in found.stages] == [f"fcn-{read}", f"fcn-pdn-{read}"]
    assert (found.scale, found.net.input, found.net.layers) == (scale, read, 15 if scale == 16 else 10)
    card = read_card(WEIGHTS / f"fcn-pdn-{read}-x{scale}.json")
    assert found.net == card.settings
    for ours, theirs in zip(found.stages, card.config["stages"], strict=True):
        assert ours == StageRecipe.model_validate(theirs)


def test_tables_are_merged_and_lists_replaced(write):
    write(BASE, "base.toml")
    path = write(
        'extends = "base.toml"\nname = "mine"\n[net]\nmaps = 8\n[[stages]]\npart = "pdn"\nsteps = 1\n'
    )
    found = read_recipe(path)
    assert (found.name, found.scale, found.seed) == ("mine", 4, 3)
    assert (found.net.layers, found.net.maps) == (5, 8)
    assert [stage.part for stage in found.stages] == ["pdn"]


def test_extends_over_two_files_in_another_folder(write, tmp_path):
    (tmp_path / "inner").mkdir()
    write(BASE, "inner/base.toml")
    write('extends = "base.toml"\nseed = 4', "inner/middle.toml")
    found = read_recipe(write('extends = "inner/middle.toml"\nscale = 8'))
    assert (found.name, found.seed, found.scale) == ("base", 4, 8)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": 'extends = "a.toml"'}, r"a.toml: extends itself by way of a.toml"),
        ({"a": 'extends = "b.toml"', "b": 'extends = "a.toml"'}, r"extends itself by way of b.toml"),
        ({"a": 'extends = "gone.toml"'}, r"gone.toml: no such file"),
        ({"a": 'extends = "\\u0000"'}, r"'extends' must be the name of a file"),
        ({"a": 'extends = "."'}, r"is a directory"),
        ({"a": "extends = 3"}, r"'extends' must be the name of a file"),
        ({"a": "= ="}, r"a.toml: not a TOML recipe \(Invalid statement"),
        ({"a": "a = " + "[" * 5000}, r"a.toml: not a TOML recipe \(nested deeper than 32"),
        ({"a": "a" + ".a" * 30_000 + " = 1"}, r"a.toml: not a TOML recipe \(nested deeper than 32"),
        ({"a": "scale = " + "1" * 5000}, r"a.toml: not a TOML recipe \(Exceeds the limit"),
        ({"a": "scale = 1979-05-27"}, r"a.toml: not a TOML recipe \(a date is not taken"),
        ({"a": "#" * 2**17}, r"a.toml: has 131072 bytes, more than the limit of 65536"),
    ],
)
def test_files_that_cannot_be_resolved(write, tmp_path, files, message):
    for name, text in files.items():
        write(text, f"{name}.toml")
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "a.toml")


def test_pipes_and_loops_of_links_are_not_followed(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match=r"pipe\.toml: is not a regular file"):
        read_recipe(tmp_path / "pipe.toml")
    (tmp_path / "a.toml").symlink_to("b.toml")
    (tmp_path / "b.toml").symlink_to("a.toml")
    with pytest.raises(InputError, match=r"\.toml: cannot be read"):
        read_recipe(tmp_path / "a.toml")


def test_a_long_chain_of_recipes_is_refused(write, tmp_path):
    for number in range(20):
        write(f'extends = "{number + 1}.toml"', f"{number}.toml")
    with pytest.raises(InputError, match=r"0\.toml: extends more than 16 recipes"):
        read_recipe(tmp_path / "0.toml")


def test_an_entry_that_is_no_table(write):
    with pytest.raises(InputError, match="'0' is a value, not a table"):
        read_recipe(write(BASE), ["stages=[1]", "stages.0.steps=1"])


def test_changes_are_read_as_toml_or_as_text(write):
    changes = [
        "stages.1.steps=7",
        "stages.0.loss=huber",
        "data.noise=[0.5, 2.0]",
        "data.turn=false",
        'name="x"',
        "validation.every=0",
    ]
    found = read_recipe(write(BASE), changes)
    assert (found.stages[1].steps, found.stages[0].loss) == (7, "huber")
    assert (found.data.noise, found.data.turn) == ((0.5, 2.0), False)
    assert (found.name, found.validation.every) == ("x", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("scale", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("stages.2.steps=1", "'2' is not one of the 2 entries"),
        ("stages.last.steps=1", "'last' is not one of the 2 entries"),
        (f"stages.{'9' * 5000}.steps=1", "is not one of the 2 entries"),
        ("stages=" + "[" * 5000, "'stages'"),
        (f"stages{'.a' * 5000}=1", "'a' is not one of the 2 entries"),
        (f"data{'.a' * 5000}=1", "data: unknown key 'a'"),
        ("stages.0.batch=100000000", "stages.0: 'batch'"),
        ("name.first=1", "'name' is a value, not a table"),
        ("sclae=2", "unknown key 'sclae'; did you mean 'scale'"),
        ("net.layres=2", "net: unknown key 'layres'; did you mean 'layers'"),
        ("data.sensr=x", "data: unknown key 'sensr'; did you mean 'sensor'"),
        ("validation.evry=2", "validation: unknown key 'evry'; did you mean 'every'"),
        ("stages.1.step=2", "stages.1: unknown key 'step'; did you mean 'steps'"),
        ("scale=0", "'scale.*': Input should be greater than or equal to 1"),
        ("stages.0.part=all", "stages.0: 'part': Input should be 'fcn', 'joint', 'pdn' or 'head'"),
        ("stages.0.steps=many", "stages.0: 'steps'.*found 'many'"),
        ("stages.0.rate=-1.0", "stages.0: 'rate': Input should be greater than 0"),
        ("stages.0.rate=nan", "stages.0: 'rate'"),
        ("stages.0.ema=1.0", "stages.0: 'ema'"),
        ("stages=[]", "'stages': Tuple should have at least 1 item"),
        ("net=big", "'net'"),
        ("data.noise=[2.0, 1.0]", "data: 'noise': .*the first number is larger"),
        ("data.near=[100.0, 200.0]", "data: 'near': .*must not be smaller than the far ones"),
        ("data.far=[20.0, 200.0]", "data: 'near': .*must not be smaller than the far ones"),
        ("data.mix=[{sensro = 'tof-v1'}]", "data.mix.0: unknown key 'sensro'; did you mean 'sensor'"),
        (
            "data.mix=[{sensor = 'gaussian-v1', albedo = true}]",
            "data.mix.0: 'albedo': .*'gaussian-v1' has no amplitude",
        ),
        ("data.mix=[{sensor = 'tof-v9', albedo = true}]", "unknown sensor 'tof-v9'"),
        ("data.mix=[{sensor = 'tof-v1', plain = 1.5}]", "data.mix.0: 'plain'"),
        ("stages.0.save_as=../x", "stages.0: 'save_as'"),
        ("stages.0.save_as=checkpoint", "'stages': .*the run itself has a file of that name"),
        ("stages.0.save_as=config", "'stages': .*the run itself has a file of that name"),
    ],
)
def test_wrong_changes_are_named(write, change, message):
    with pytest.raises(InputError, match=message):
        read_recipe(write(BASE), [change])


def test_two_stages_under_one_name(write):
    with pytest.raises(InputError, match="two stages are saved under one name"):
        read_recipe(write(BASE), ["stages.0.save_as=a", "stages.1.save_as=a"])

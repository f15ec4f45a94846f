"""Scenes that a recipe names: where they lie, which are missing, and what the card says of them."""

import json

import pytest
import torch
from toy_runs import FCN, JOINT, recipe, run, same_tensors, scene

from primaldepth.core.errors import InputError
from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.single_scenes import write_part
from primaldepth.networks.card import Asset, read_card
from primaldepth.training.recipe import SceneSet, read_recipe
from primaldepth.training.run import train
from primaldepth.training.scene_sets import SceneSets, missing_sets, set_folder
from primaldepth.training.state import Position, TrainState

CPU = torch.device("cpu")
FIRST = {"count": 6, "size": 32, "samples": 1}
SECOND = {"count": 10, "size": 40, "samples": 1, "seed": 1}
TWO = (FCN, {**JOINT, "save_as": "toy-pdn"})


def rendered(folder, wanted, count=None, **changes):
    """Put scenes where a set belongs, as the renderer would."""
    wanted = SceneSet.model_validate(wanted)
    place = set_folder(folder, wanted)
    made = {**wanted.render.made_with(), "variant": "llvm", **changes}
    job = Manifest(made_with=made, versions={}, scenes_per_shard=2, count=count or wanted.count)
    with ShardWriter(place, job) as writer:
        for number in writer.missing():
            write_part(place, number, scene(number + 100 * wanted.seed, wanted.size))
            writer.add(number)
    return place


def both(*stages, **changes):
    return recipe(*(stages or TWO), **{"scenes": (FIRST, SECOND), **changes})


class TestMissing:
    def test_all_at_first(self, tmp_path):
        found = missing_sets(both(), tmp_path)
        assert [place.name for place, _ in found] == ["rich-6x32-seed0", "rich-10x40-seed1"]
        assert [wanted.count for _, wanted in found] == [6, 10]

    def test_what_is_there_is_not_missing(self, tmp_path):
        rendered(tmp_path, FIRST)
        assert [place.name for place, _ in missing_sets(both(), tmp_path)] == ["rich-10x40-seed1"]
        rendered(tmp_path, SECOND)
        assert missing_sets(both(), tmp_path) == []

    def test_a_part_is(self, tmp_path):
        rendered(tmp_path, SECOND)
        rendered(tmp_path, FIRST, count=4)
        assert [place.name for place, _ in missing_sets(both(), tmp_path)] == ["rich-6x32-seed0"]
        with pytest.raises(InputError, match=r"6x32-seed0: 4 of 6 scenes are there; 'primaldepth train'"):
            SceneSets(both(), tmp_path)

    def test_those_of_another_machine_are_there(self, tmp_path):
        rendered(tmp_path, FIRST, variant="cuda")
        rendered(tmp_path, SECOND)
        assert missing_sets(both(), tmp_path) == []

    def test_others_in_their_place_are_refused(self, tmp_path):
        rendered(tmp_path, FIRST, samples=8)
        with pytest.raises(InputError, match=r"seed0: holds other scenes: samples is 8 there and 1 in the"):
            missing_sets(both(), tmp_path)

    def test_a_folder_of_scenes_takes_the_place_of_the_recipes(self, shards):
        assert missing_sets(both(), shards) == []
        assert SceneSets(both(), shards).names.startswith("10 rendered scenes: preset toy")


class TestStages:
    def test_each_has_its_set_and_the_last_serves_the_rest(self, tmp_path):
        rendered(tmp_path, FIRST)
        rendered(tmp_path, SECOND)
        sets = SceneSets(both(*TWO, TWO[0]), tmp_path, verify=True)
        sides = [sets.training(stage, CPU).depth.shape for stage in range(3)]
        assert sides == [(5, 32, 32), (8, 40, 40), (8, 40, 40)]  # without those held out
        held_out = sets.held_out(CPU)
        assert held_out.depth.shape == (2, 40, 40)
        assert sets.names == (
            "6 rendered scenes: preset rich, samples 1, seed 0, size 32, textures built-in; "
            "10 rendered scenes: preset rich, samples 1, seed 1, size 40, textures built-in"
        )

    def test_scenes_that_are_too_small_for_a_later_stage(self, tmp_path):
        rendered(tmp_path, FIRST)
        wanted = recipe(FCN, {**JOINT, "patch": 34}, scenes=(FIRST,))
        with pytest.raises(InputError, match=r"scenes of 32x32 are smaller than stages.1.patch, 34"):
            SceneSets(wanted, tmp_path)

    def test_more_sets_than_stages(self):
        with pytest.raises(ValueError, match="more sets of scenes than stages"):
            recipe(FCN, scenes=(FIRST, SECOND))


class TestRun:
    def test_a_run_on_two_sets_goes_on_on_another_machine(self, tmp_path):
        """The folder of the run is copied; scenes are rendered there again, by another variant."""
        for machine, variant in (("a", "cuda"), ("b", "llvm")):
            for wanted in (FIRST, SECOND):
                rendered(tmp_path / machine / "scenes", wanted, variant=variant)
        run(both(), tmp_path / "a/scenes", tmp_path / "a/whole")

        def stop(event):
            if event.kind == "step" and (event.stage, event.step) == (1, 4):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(both(), tmp_path / "a/scenes", tmp_path / "a/run", observer=stop)
        (tmp_path / "a/run").rename(tmp_path / "b/run")
        run(both(), tmp_path / "b/scenes", tmp_path / "b/run", resume=True)
        file = "toy-pdn-x2.safetensors"
        assert same_tensors(tmp_path / "b/run" / file, tmp_path / "a/whole" / file)

    def test_other_scenes_are_refused(self, tmp_path):
        rendered(tmp_path, FIRST)
        rendered(tmp_path, SECOND)
        run(both(), tmp_path, tmp_path / "run")
        other = {**SECOND, "seed": 2}
        rendered(tmp_path, other)
        changed = both(scenes=(FIRST, other))
        with pytest.raises(InputError, match=r"another recipe: scenes.1.seed is 1 there and 2 now"):
            run(changed, tmp_path, tmp_path / "run", resume=True)

    def test_the_card_names_recipe_scenes_and_assets(self, tmp_path):
        asset = {"name": "Bark", "licence": "CC0-1.0", "source": "own photographs"}
        pictured = {**SECOND, "textures": str(tmp_path / "bark"), "assets": [asset]}
        wanted = recipe(*TWO, scenes=(FIRST, pictured))
        rendered(tmp_path, FIRST)
        rendered(tmp_path, SECOND, textures="0123456789abcdef")
        run(wanted, tmp_path, tmp_path / "run")
        card = read_card(tmp_path / "run/toy-pdn-x2.json")
        assert (card.recipe, card.recipe_sha256) == ("toy", wanted.sha256)
        assert card.assets == (Asset(**asset),)
        assert "seed 1, size 40, textures 0123456789abcdef" in card.data
        assert card.config["scenes"][0]["count"] == 6

    def test_assets_of_which_nothing_is_said(self, tmp_path):
        rendered(tmp_path, FIRST, textures="0123456789abcdef")
        wanted = recipe(TWO[1], scenes=(FIRST,))
        found = SceneSets(wanted, tmp_path).assets
        assert found == (Asset(name="textures 0123456789abcdef", licence="not stated"),)
        rendered(tmp_path, SECOND)
        assert SceneSets(recipe(TWO[1], scenes=(SECOND,)), tmp_path).assets == ()


class TestRecipe:
    def test_what_does_not_change_the_result_does_not_change_the_hash(self):
        first = both().sha256
        assert both(on_nan="skip", checkpoint_every=7).sha256 == first
        assert both(scenes=({**FIRST, "variant": "cuda"}, {**SECOND, "textures": "x"})).sha256 == first
        assert both(seed=1).sha256 != first
        assert both(scenes=({**FIRST, "count": 7}, SECOND)).sha256 != first

    def test_where_textures_lie_may_change(self, tmp_path):
        moved = json.loads(both().model_dump_json())
        moved["scenes"][1] |= {"textures": "elsewhere", "variant": "cuda"}
        state = TrainState(both().model_dump_json(), "scenes", Position(), {})
        state.check_same_run(tmp_path, json.dumps(moved), "scenes")

    def test_unknown_keys_are_named(self, tmp_path):
        (tmp_path / "r.toml").write_text(
            'name = "x"\nscale = 2\n[[scenes]]\ncuont = 3\n[[stages]]\npart = "fcn"\nsteps = 1\n'
        )
        with pytest.raises(InputError, match=r"scenes.0: unknown key 'cuont'; did you mean 'count'"):
            read_recipe(tmp_path / "r.toml")

    def test_names_in_save_as(self, tmp_path):
        (tmp_path / "r.toml").write_text(
            'name = "x"\nscale = 2\n[[stages]]\npart = "fcn"\nsteps = 1\nsave_as = "{name}-{input}"\n'
        )
        assert read_recipe(tmp_path / "r.toml").stages[0].save_as == "x-s"
        changed = read_recipe(tmp_path / "r.toml", ["net.input=d", "name=y"])
        assert changed.stages[0].save_as == "y-d"
        with pytest.raises(InputError, match="'save_as'"):
            read_recipe(tmp_path / "r.toml", ["stages.0.save_as={other}"])

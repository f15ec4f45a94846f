"""The paper's own training: its row stands beside what was printed and what our recipe gave."""

from pathlib import Path

import pytest

from primaldepth.core.errors import InputError
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rows import Row
from primaldepth.report.blocks import Paragraph
from primaldepth.report.paper_recipe import PaperRecipe, paper_recipe, section
from primaldepth.training.recipe import read_recipe

CONFIG = Path(__file__).parents[2] / "configs" / "paper-x8.toml"
PROTOCOL = get_protocol("noisy-middlebury")
RUN = {
    "scale": 8,
    "scenes": 500,
    "machine": "a machine",
    "networks": [
        {
            "like": "fcn-pdn-s",
            "steps": 30000,
            "seconds": 300.5,
            "rmse": {"art": 4.0, "books": 2.0, "moebius": 2.0},
        }
    ],
}


def test_row_stands_between_the_printed_one_and_ours():
    rows = {("fcn-pdn-s", s, 8): Row("fcn-pdn-s", s, 8, 3.0, 1.0, 1.0, {}, "") for s in PROTOCOL.scenes}
    made = section(PROTOCOL, rows, PaperRecipe.parse(RUN, "test"))
    about, table, result = made.blocks
    assert "500 scenes" in about.text
    assert [row.cells[0].text.partition(", ")[2] for row in table.rows] == [
        "as printed",
        "the paper's recipe",
        "our recipe",
    ]
    assert [cell.text for cell in table.rows[1].cells[1:]] == ["4.00", "2.00", "2.00", "2.52", "30000", "300"]
    assert table.rows[0].cells[1].text == "4.48"
    assert "the paper's recipe: 2.52 after 30,000 steps, 300 s" in result.text


def test_without_a_run_the_section_says_so():
    (block,) = section(PROTOCOL, {}, None).blocks
    assert isinstance(block, Paragraph)
    assert block.notice


def test_figures_of_the_package_are_of_the_recipe_that_is_there():
    run = paper_recipe()
    if run is None:
        pytest.skip("the recipe was not run to its end yet")
    recipe = read_recipe(CONFIG)
    assert run.scale == recipe.scales[0]
    assert run.scenes == recipe.scenes[0].count - recipe.data.held_out
    assert [network.steps for network in run.networks] == [25000, 30000]
    assert all(set(network.rmse) == set(PROTOCOL.scenes) for network in run.networks)


def test_unknown_figures_are_refused():
    with pytest.raises(InputError, match=r"networks\.0: unknown key"):
        PaperRecipe.parse({**RUN, "networks": [{**RUN["networks"][0], "hours": 1}]}, "paper_recipe.json")


def test_epochs_of_the_recipe_are_whole():
    recipe = read_recipe(CONFIG)
    for stage, epochs in zip(recipe.stages, (25, 10), strict=True):
        scenes, side = recipe.scenes[0].count - recipe.data.held_out, recipe.scenes[0].size
        assert stage.steps * stage.batch == epochs * scenes * (side // stage.patch) ** 2

"""The paper's own training, run to its end and scored, for the report.

primaldepth train configs/paper-x8.toml --data SCENES --out RUN
python -m benchmarks.quality.paper_recipe RUN --data DATA --out src/primaldepth/report/paper_recipe.json

Reads the weights of the run, scores them on noisy-middlebury at the recipe's scale, and prints and
writes what the report shows.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from primaldepth.bench.timing import machine
from primaldepth.compute.device import pick_device
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.run import evaluate
from primaldepth.methods import create
from primaldepth.networks.card import ModelCard
from primaldepth.networks.zoo import card_of
from primaldepth.report.paper_recipe import steps_of
from primaldepth.training.recipe import Recipe
from primaldepth.training.weights import weight_files

PREFIX = "paper-"


def main() -> None:
    """Score the run's weights; print and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--machine", default="", help="that trained; this one if not given")
    args = parser.parse_args()
    place = pick_device(args.device)
    recipe = Recipe.parse(json.loads((args.run / "config.json").read_text()), str(args.run / "config.json"))
    networks = [_scored(path, args.data, str(place)) for path in weight_files(recipe, args.run).values()]
    found = {
        "scale": recipe.scales[0],
        "scenes": recipe.scenes[0].count - recipe.data.held_out,
        "machine": args.machine or machine(place.type),
        "networks": networks,
    }
    args.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


def _scored(path: Path, data: Path, device: str) -> dict[str, Any]:
    card: ModelCard = card_of(path)
    rows = evaluate(get_protocol("noisy-middlebury"), [create(str(path))], data, [card.scale or 1], device)
    return {
        "like": card.name.removeprefix(PREFIX),
        "steps": steps_of(card),
        "seconds": round(card.seconds, 1),
        "rmse": {row.scene: round(row.rmse, 4) for row in rows},
    }


if __name__ == "__main__":
    main()

"""Calibrate the sigma of trained weights again, on the protocols they were chosen by.

    python scripts/calibrate_weights.py WEIGHTS.safetensors --data DATA

Every scale counts alike. Nothing but sigma changes; the card says so.
"""

import argparse
from pathlib import Path

import torch

from primaldepth.networks import from_pretrained
from primaldepth.networks.card import read_card
from primaldepth.networks.zoo import save_model
from primaldepth.training.calibration import calibrate
from primaldepth.training.recipe import Recipe
from primaldepth.training.validation import Validator


def main() -> None:
    """Write the weights and their card in place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    card = read_card(arguments.weights.with_suffix(".json"))
    recipe = Recipe.parse(card.config, "config of the card")
    net = from_pretrained(arguments.weights)
    validator = Validator(recipe, None, arguments.data, torch.device("cpu"))
    if validator.missing:
        raise SystemExit("; ".join(validator.missing))
    with torch.no_grad():
        scores = calibrate(net, validator)
    factor = scores["sigma factor"] * card.scores.get("sigma factor", 1.0)
    notes = f"sigma calibrated on {' and '.join(recipe.validation.names)}"
    new = card.model_copy(update={"scores": {**card.scores, "sigma factor": factor}, "notes": notes})
    save_model(arguments.weights, net, new, half=recipe.half)
    print(f"factor {scores['sigma factor']:.4f}, within sigma before {scores['within sigma before']:.4f}")


if __name__ == "__main__":
    main()

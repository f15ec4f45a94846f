"""Settings of methods on the command line."""

from collections.abc import Sequence

from primaldepth.core.errors import InputError

ENSEMBLE_HELP = "Mean of a network's results on eight flips and rotations: better, slower."
ITERATIONS_HELP = "Primal-dual iterations in place of the method's own number; at most 10000."
SET_HELP = "Setting of the method; repeat for several."


def method_options(pairs: Sequence[str], **given: int | bool | None) -> dict[str, str]:
    """KEY=VALUE pairs, and options of their own names that were given."""
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--set: '{pair}' is not KEY=VALUE")
    named = {name: str(value) for name, value in given.items() if value is not None}
    return dict(pair.split("=", 1) for pair in pairs) | named

"""Tables taken from the code while building, so that they cannot go stale."""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import list_methods
from primaldepth.methods.variational import DEFAULTS
from primaldepth.pipeline.request import DEFAULT_METHOD

MEANING = {
    "lam": "weight of a sample at x1, $\\lambda$",
    "growth": "how the weight follows the distance of samples, $\\delta$",
    "beta": "strength of guide edges, $\\beta$",
    "gamma": "exponent of the guide's gradient, $\\gamma$",
    "alpha_0": "weight of the slope's variation, $\\alpha_0$",
    "window": "side of the window of pairs",
    "sigma_d": "reach of a pair in pixels, $\\sigma_d$",
    "sigma_v": "reach of a pair in guide values, $\\sigma_v$",
    "eps": "width of the quadratic part, $\\varepsilon$",
    "ratio": "factor of the dual steps, divisor of the primal ones, $\\rho$",
    "contrast": "spread of the depth in units of the noise beyond which $\\rho$ falls; 0: never",
    "iterations": "steps on the finest grid",
    "coarse_iterations": "steps on each coarser grid",
    "levels": "grids at most, the finest included",
    "change_tolerance": "early stop; 0: never",
    "sensor": "kernel of the sampling operator $A$",
}


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Defaults(SphinxDirective):
    """Default parameters of the named methods."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"keys": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        names, keys = self.arguments[0].split(), self.options["keys"].split()
        rows = [
            [f"`{key}`", MEANING[key], *(f"{getattr(DEFAULTS[name], key)}" for name in names)] for key in keys
        ]
        return self.parse_text_to_nodes(
            markdown(["parameter", "meaning", *(f"`{name}`" for name in names)], rows)
        )


class Methods(SphinxDirective):
    """Every method there is."""

    def run(self) -> list[nodes.Node]:
        rows = [
            [f"`{info.name}`", info.family, "yes" if info.uses_guide else "no", info.summary]
            for info in list_methods()
        ]
        text = markdown(["name", "family", "guide", "what it does"], rows)
        return self.parse_text_to_nodes(f"{text}\n\nThe default is `{DEFAULT_METHOD}`.")


def _scenes(names: tuple[str, ...]) -> str:
    """All names, or the first and the last of very many."""
    return ", ".join(names) if len(names) < 40 else f"{names[0]} to {names[-1]}, {len(names)} of them"


class ProtocolFacts(SphinxDirective):
    """What the frozen description of a protocol says."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        protocol = get_protocol(self.arguments[0])
        rows = [
            ["version", str(protocol.version)],
            ["folder", f"`{protocol.folder}`"],
            ["scenes", _scenes(protocol.scenes)],
            ["scales", ", ".join(f"x{scale}" for scale in protocol.scales)],
            ["unit of the errors", protocol.unit],
            ["made of", protocol.made_of],
        ]
        return self.parse_text_to_nodes(markdown(["", f"`{protocol.name}`"], rows))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("defaults", Defaults)
    app.add_directive("methods", Methods)
    app.add_directive("protocol", ProtocolFacts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

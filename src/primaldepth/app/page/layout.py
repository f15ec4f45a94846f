"""The controls and outputs of the page, and what a click does."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from primaldepth.app.engine import Engine
from primaldepth.app.page.method_comparison import MOST_FRAMES, REDUCTIONS, comparer
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.result_files import Drawn
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.app.page.visitor_requests import (
    AS_FILE_SAYS,
    NO_METHOD,
    Choice,
    facts,
    problem_text,
    results,
)
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import method_names
from primaldepth.io.units import COMMON_UNITS
from primaldepth.pipeline.request import KEEP_SAMPLES, Item, Request, declarations
from primaldepth.samples import Example, example_scenes

_DEPTH_TYPES = [".png", ".exr", ".pfm", ".npy", ".npz", ".tif", ".tiff", ".mat"]
_GUIDE_TYPES = [".png", ".jpg", ".jpeg", ".tif", ".tiff", ".exr", ".npy"]
_CAMERA_TYPES = [".json", ".txt", ".yaml", ".yml"]
FILE_TYPES = frozenset((*_DEPTH_TYPES, *_GUIDE_TYPES, *_CAMERA_TYPES))
_VIEW = "3-D"
_NO_SIGMA = '<div class="pd-note">This method does not say how sure it is of each pixel.</div>'
_NO_OTHER = '<div class="pd-note">Choose a second method on the left, and run again.</div>'
_NO_MESH = (
    '<div class="pd-note">No 3-D view: disparity is no distance, or no two pixels lie close enough.</div>'
)


def build(engine: Engine, settings: ServiceSettings, folders: VisitorFolders, sources: ReadableFiles) -> Any:
    """Return the page as Gradio blocks; it reads files of `sources` alone.

    Args:
        engine: that computes.
        settings: of the service.
        folders: for results.
        sources: files that may be read.
    """
    import gradio as gr

    with gr.Blocks(title="primaldepth", analytics_enabled=False, delete_cache=(300, 1800)) as page:
        gr.HTML(
            "<h1>primaldepth</h1><p>A small noisy depth map and a sharp image of the same view become one "
            "clean depth map of the image's size.</p>",
            elem_classes="pd-head",
        )
        with gr.Row():
            with gr.Column(scale=2, min_width=300):
                inputs, button = _inputs(gr, settings)
            with gr.Column(scale=3, min_width=300):
                outputs, views = _outputs(gr)
        run = button.click(_runner(engine, folders, sources), inputs, outputs, api_visibility="private")
        _link(gr, views, run)
        _trials(gr, engine, folders, sources)
    page.queue(default_concurrency_limit=settings.queue, max_size=4 * settings.queue)
    return page


def _inputs(gr: Any, settings: ServiceSettings) -> tuple[list[Any], Any]:
    """Make the controls, in the order of the fields of `Choice`, and the button that starts."""
    names, shown = method_names(), declarations(Item) | declarations(Request)

    def file(name: str, types: list[str]) -> Any:
        return gr.File(label=shown[name].label, file_types=types, height=150)

    def dropdown(name: str, *first: str, info: str | None = None) -> Any:
        each, choices = shown[name], [*first, *shown[name].choices]
        more = {"allow_custom_value": each.open_ended, "label": each.label, "info": info}
        return gr.Dropdown(choices, value=choices[0], **more)

    depth, guide = file("depth", _DEPTH_TYPES), file("guide", _GUIDE_TYPES)
    examples = example_scenes()
    with gr.Row():
        buttons = [gr.Button(f"Example: {each.title}", size="sm", min_width=140) for each in examples]
    with gr.Row():
        method = gr.Dropdown(names, value=settings.method, label=shown["method"].label, min_width=140)
        other = gr.Dropdown([NO_METHOD, *names], value=NO_METHOD, label="Compare with", min_width=140)
    noise = dropdown("noise", info="auto, a standard deviation in the unit of the file, or a sensor")
    run = gr.Button("Run", variant="primary", size="lg")
    with gr.Accordion("Unit, kind, spikes, limits, confidence, cameras", open=False):
        unit = dropdown("unit", AS_FILE_SAYS, info="a number counts stored numbers per metre")
        kind = dropdown("kind", AS_FILE_SAYS)
        spikes = gr.Checkbox(label="Keep spikes: samples far from all their neighbours")
        with gr.Row():
            keep = gr.Number(
                KEEP_SAMPLES,
                label=shown["keep_samples"].label,
                info="0: leave the result",
                minimum=0,
                min_width=140,
            )
            certain = gr.Number(
                None, label=shown["max_sigma"].label, info="more becomes a hole", minimum=0, min_width=140
            )
        confidence, cameras = file("confidence", _DEPTH_TYPES), file("cameras", _CAMERA_TYPES)
    for button, example in zip(buttons, examples, strict=True):
        button.click(partial(_paths, example), None, [depth, guide, cameras], api_visibility="private")
    return [depth, guide, method, other, noise, unit, kind, confidence, cameras, spikes, keep, certain], run


def _paths(example: Example) -> list[str]:
    return [str(path) for path in (example.depth, example.guide, example.cameras)]


def _trials(gr: Any, engine: Engine, folders: VisitorFolders, sources: ReadableFiles) -> None:
    """Add the part that compares methods on frames of the visitor's own camera."""
    with gr.Accordion("Which method suits my camera?", open=False, elem_id="trials"):
        gr.HTML(
            f"<p>Drop up to {MOST_FRAMES} depth maps of your camera and the images of the same views. Each "
            "map is reduced, restored by several methods, and compared with itself; rectangles are cut out "
            "and filled as well. A frame of 640 x 480 pixels takes seconds with each method.</p>"
        )
        with gr.Row():
            with gr.Column(scale=2, min_width=300):
                several = {"file_count": "multiple", "height": 150}
                depths = gr.File(label="Depth maps", file_types=_DEPTH_TYPES, **several)
                images = gr.File(label="Images, at least as large", file_types=_GUIDE_TYPES, **several)
                with gr.Row():
                    reduce = gr.Dropdown(
                        list(REDUCTIONS), value="4", label="Keep one sample of NxN", min_width=140
                    )
                    unit = gr.Dropdown(
                        [AS_FILE_SAYS, *COMMON_UNITS],
                        value=AS_FILE_SAYS,
                        label="Unit of the maps",
                        min_width=140,
                    )
                button = gr.Button("Compare methods", variant="primary")
            with gr.Column(scale=3, min_width=300):
                status = gr.HTML('<div class="pd-note">Nothing was compared yet.</div>', elem_id="verdict")
                table = gr.HTML()
                picture = gr.Image(
                    label="The worst frame", show_label=False, type="filepath", format="png",
                    interactive=False, buttons=["download", "fullscreen"],
                )  # fmt: skip
        button.click(
            comparer(engine, folders, sources),
            [depths, images, reduce, unit],
            [status, table, picture],
            api_visibility="private",
            concurrency_limit=1,
        )


@dataclass(frozen=True, slots=True)
class _Views:
    """The 3-D views, the tabs they are in, and the paths of the meshes they are to show."""

    tabs: Any
    meshes: Any
    before: Any
    after: Any


def _link(gr: Any, views: _Views, run: Any) -> None:
    """Load the meshes only while their tab is open: a 3-D view that is filled while hidden stays empty."""
    chosen = gr.State("")

    def select(event: gr.SelectData, meshes: Any) -> list[Any]:
        return [event.value, *(meshes if event.value == _VIEW else (gr.skip(), gr.skip()))]

    def again(tab: str, meshes: Any) -> list[Any]:
        return list(meshes) if tab == _VIEW else [None, None]

    both = [views.before, views.after]
    views.tabs.select(
        select, [views.meshes], [chosen, *both], api_visibility="private", show_progress="hidden"
    )
    run.then(again, [chosen, views.meshes], both, api_visibility="private", show_progress="hidden")


def _outputs(gr: Any) -> tuple[list[Any], _Views]:
    """Make everything that shows a result, in the order of `_shown`."""
    status = gr.HTML(
        '<div class="pd-note">Drop two files or click an example, then run.</div>', elem_id="status"
    )
    shown = {"type": "filepath", "format": "png", "interactive": False, "buttons": ["download", "fullscreen"]}
    compared = {**shown, "max_height": 520, "show_label": False}
    meshes = gr.State((None, None))
    with gr.Tabs() as tabs:
        with gr.Tab("Before/after"):
            gr.HTML("<p>Samples (left) and result (right), on one colour scale</p>")
            slider = gr.ImageSlider(label="Samples and result", **compared)
            bar = gr.HTML()
            guide = gr.Image(label="The image", height=240, **shown)
        with gr.Tab("Two methods"):
            other_note = gr.HTML(_NO_OTHER)
            other_slider = gr.ImageSlider(label="First and second method", visible=False, **compared)
            other_bar = gr.HTML()
        with gr.Tab(_VIEW):
            mesh_note = gr.HTML()
            with gr.Row():
                before = gr.Model3D(label="Before", height=360, min_width=260, interactive=False)
                after = gr.Model3D(label="After", height=360, min_width=260, interactive=False)
        with gr.Tab("Download"):
            files = gr.File(label="The result in every format", file_count="multiple", interactive=False)
        with gr.Tab("Residual"):
            residual = gr.Image(label="Result less samples", show_label=False, **shown)
            residual_bar = gr.HTML()
            chart = gr.HTML()
        with gr.Tab("Certainty"):
            sigma_note = gr.HTML(_NO_SIGMA)
            sigma = gr.Image(label="How far it may be off", show_label=False, visible=False, **shown)
            sigma_bar = gr.HTML()
    outputs = [
        status, slider, bar, other_note, other_slider, other_bar, mesh_note, meshes, residual,
        residual_bar, sigma_note, sigma, sigma_bar, chart, guide, files,
    ]  # fmt: skip
    return outputs, _Views(tabs, meshes, before, after)


def _runner(engine: Engine, folders: VisitorFolders, sources: ReadableFiles) -> Callable[..., list[Any]]:
    def run(*values: Any) -> list[Any]:
        try:
            drawn, other = results(engine, Choice(*values), folders.new(), sources)
        except Exception as error:  # Gradio would write its text into the log
            return [problem_text(error), *_EMPTY]
        return _shown(drawn, other)

    return run


def _shown(drawn: Drawn, other: Drawn | None) -> list[Any]:
    import gradio as gr

    pair = None if other is None else (str(drawn.after), str(other.after))
    files = [*drawn.files, drawn.mesh_after, *(() if other is None else other.files)]
    return [
        facts(drawn, other),
        (str(drawn.before), str(drawn.after)),
        drawn.bar,
        _NO_OTHER
        if other is None
        else f"<p>{drawn.report['method']} (left) and {other.report['method']} (right)</p>",
        gr.update(value=pair, visible=pair is not None),
        "" if other is None else drawn.bar,
        _NO_MESH if drawn.mesh_after is None else "",
        (_path(drawn.mesh_before), _path(drawn.mesh_after)),
        str(drawn.residual),
        drawn.residual_bar,
        _NO_SIGMA if drawn.sigma is None else "",
        gr.update(value=_path(drawn.sigma), visible=drawn.sigma is not None),
        drawn.sigma_bar,
        drawn.histogram,
        str(drawn.guide),
        [str(path) for path in files if path is not None],
    ]


_EMPTY: list[Any] = [None, "", "", None, "", "", (None, None), None, "", "", None, "", "", None, None]


def _path(path: Any) -> str | None:
    return None if path is None else str(path)

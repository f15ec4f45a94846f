"""Colours and fonts of the page: fonts of the reader's machine, contrasts of at least 4.5 to 1."""

from typing import Any

_SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_MONO = ("ui-monospace", "Consolas", "DejaVu Sans Mono", "monospace")


def theme() -> Any:
    """Return Gradio's base theme without fonts of other servers."""
    import gradio as gr

    return gr.themes.Base(
        primary_hue="blue", secondary_hue="blue", neutral_hue="slate", font=_SANS, font_mono=_MONO
    ).set(
        button_primary_background_fill="#1d4ed8",
        button_primary_background_fill_hover="#1e40af",
        button_primary_background_fill_dark="#1d4ed8",
        button_primary_background_fill_hover_dark="#2563eb",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
        link_text_color="#1d4ed8",
        link_text_color_dark="#93c5fd",
        color_accent="#1d4ed8",
        body_text_color_subdued="#475569",
        body_text_color_subdued_dark="#cbd5e1",
        block_label_text_color="#334155",
        block_label_text_color_dark="#e2e8f0",
        block_info_text_color="#475569",
        block_info_text_color_dark="#cbd5e1",
        block_title_text_color="#1e293b",
        block_title_text_color_dark="#e2e8f0",
    )

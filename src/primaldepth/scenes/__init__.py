"""Training data from nothing: a seed becomes a scene, a scene an image with exact depth.

`sampler` turns a seed into a plain description, `renderer` turns the description into arrays. Only
`renderer` knows Mitsuba, and only once it is used.
"""

from primaldepth.scenes.description import Scene
from primaldepth.scenes.sampler import PRESETS, sample
from primaldepth.scenes.textures import TextureSource

__all__ = ["PRESETS", "Scene", "TextureSource", "sample"]

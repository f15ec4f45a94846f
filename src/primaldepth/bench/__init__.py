"""What `primaldepth bench` measures: kernels, networks, the stages of a frame, the renderer."""

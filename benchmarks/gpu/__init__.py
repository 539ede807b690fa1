"""Both real engines on a GPU: order, bound, speed and tokens; see docs/gpu.md."""

"""Without CrossHair there is nothing to collect in the backend."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("hypothesis_crosshair_provider") else ["backend.py"]

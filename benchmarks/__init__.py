"""Speed, as ratios measured in one run: ``tox run -e bench``."""

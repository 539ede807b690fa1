"""``python -m justitia``."""

import sys

from justitia.cli import main

if __name__ == "__main__":
    sys.exit(main())

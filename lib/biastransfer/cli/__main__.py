"""``python -m biastransfer.cli``: what ``biastransfer`` does, for torchrun and uninstalled checkouts."""

import sys

from biastransfer.cli import main

if __name__ == "__main__":
    sys.exit(main())

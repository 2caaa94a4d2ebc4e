import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real inputs for checks; tests that need it are skipped where it is not there."""
    chosen = os.environ.get("BIASTRANSFER_SHARED")
    folder = Path(chosen) if chosen else Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real inputs are not there: {folder} (set BIASTRANSFER_SHARED)")
    return folder.resolve()

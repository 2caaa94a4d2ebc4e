"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real inputs outside the repository; a test that needs it is skipped where it is not."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BIASTRANSFER_SHARED", beside))
    if not folder.is_dir():
        pytest.skip(f"real pictures are not here ({folder}); set BIASTRANSFER_SHARED to run this test")
    return folder

import json
import os
import shutil
from pathlib import Path

import pytest

from biastransfer.analysis_sets import AnalysisSet, load_set


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real inputs for checks; tests that need it are skipped where it is not there."""
    chosen = os.environ.get("BIASTRANSFER_SHARED")
    folder = Path(chosen) if chosen else Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real inputs are not there: {folder} (set BIASTRANSFER_SHARED)")
    return folder.resolve()


@pytest.fixture(scope="session")
def released_set(shared_data, tmp_path_factory) -> AnalysisSet:
    """The gender paper's released Open Images sets, unpacked (160 MB) for this session only."""
    folder = tmp_path_factory.mktemp("released")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIASTRANSFER_ROOT", str(folder))
        loaded = load_set("released", root=shared_data / "released-analysis-sets.tar")
    yield loaded  # outside the block: other tests of the session keep their own root
    shutil.rmtree(folder)


@pytest.fixture
def server(monkeypatch):
    """A local web server, see serving.py; asked directly, whatever proxy this machine has."""
    from serving import serving  # beside the tests that need it

    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "*")
    with serving() as running:
        yield running


@pytest.fixture
def listed(tmp_path, server):
    """Write a list of sources: name → keys; content goes to the server."""

    def write(**entries):
        lines = []
        for name, (content, keys) in entries.items():
            server.files[f"/{name}"] = content
            known = {"url": f"{server.url}/{name}", "path": f"in/{name}", "licence": "x", "use": "y"} | keys
            lines += [f"[files.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in known.items())]
        file = tmp_path / "sources.toml"
        file.write_text("\n".join(lines))
        return {"sources": file, "root": tmp_path / "raw"}

    return write

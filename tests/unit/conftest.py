import json

import pytest
from serving import serving


@pytest.fixture
def server(monkeypatch):
    """A local web server, see serving.py; asked directly, whatever proxy this machine has."""
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

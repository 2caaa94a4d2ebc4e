"""Fetching from a local server that drops, truncates, stalls, lies and forgets."""

import hashlib
import io
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from PIL import Image
from serving import TAG

from biastransfer.fetch import FetchError, Settings, fetch, fetch_pictures, network
from biastransfer.fetch.sources import mirrored

DATA = bytes(range(256)) * 400  # 102,400 bytes; a shifted join would show
QUICK = {"backoff": 0.01, "timeout": 0.6, "retries": 3}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def only(report):
    [one] = report.outcomes
    return one


def left(root):
    """Every file below the root, but for what was fetched."""
    return sorted(file.name for file in root.rglob("*") if file.is_file())


HASHED = {"bytes": len(DATA), "sha256": sha(DATA)}


def test_a_file_comes_whole_and_is_then_present(server, listed):
    where = listed(a=(DATA, HASHED))
    first = only(fetch(["a"], **where, **QUICK))
    assert (first.file, first.status, first.bytes, first.reason) == ("in/a", "fetched", len(DATA), "")
    assert (where["root"] / "in/a").read_bytes() == DATA
    assert only(fetch(["a"], **where, **QUICK)).status == "present"
    assert server.ranges("/a") == [None]
    assert left(where["root"]) == ["a"]


@pytest.mark.parametrize(
    ("tricks", "status", "spans"),
    [
        (["drop"], "resumed", [None, "bytes=51200-"]),
        (["drop", "drop"], "resumed", [None, "bytes=51200-", "bytes=76800-"]),
        (["short"], "fetched", [None]),
        (["stall"], "resumed", [None, "bytes=51200-"]),
        (["drop", "no ranges"], "fetched", [None, "bytes=51200-"]),
        (["drop", "another tag"], "fetched", [None, "bytes=51200-", None]),
        (["drop", "another place"], "fetched", [None, "bytes=51200-", None]),
        (["wrong bytes"], "fetched", [None, None]),
        ([500, 503], "fetched", [None] * 3),
        (["later 0.02"], "fetched", [None] * 2),
        (["to /b"], "fetched", [None]),
        (["chunked"], "fetched", [None]),
        (["drip"], "resumed", None),
        (["drop", 500, "drop"], "resumed", [None, "bytes=51200-", "bytes=51200-", "bytes=76800-"]),
    ],
    ids=str,
)
def test_what_servers_do_to_a_file_and_the_same_bytes_in_the_end(server, listed, tricks, status, spans):
    where = listed(a=(DATA, HASHED), b=(DATA, {}))
    if tricks == ["short"]:  # the server announces one byte less than there are, and sends as many
        spans = [None, None]
    server.tricks["/a"] = list(tricks)
    ended = only(fetch(["a"], **where, **QUICK))
    assert (ended.status, ended.reason) == (status, "")
    assert (where["root"] / "in/a").read_bytes() == DATA
    assert left(where["root"]) == ["a"]
    assert spans is None or server.ranges("/a") == spans


@pytest.mark.parametrize(
    ("tricks", "reason"),
    [
        ([404], "the server answers 404 Not Found"),
        ([403], "the server answers 403 Forbidden"),
        ([500] * 9, "the server answers 500 Internal Server Error (4 tries)"),
        (["later 0"] * 9, "the server answers 429 Too Many Requests (4 tries)"),
        (["wrong bytes"] * 9, f"its sha256 must begin with {sha(DATA)}; it is "),
        (["zipped"], "the server must send the file as it is; it sends it as gzip"),
        (["to ftp://elsewhere/a"], "the address leads nowhere (No connection adapters were found for"),
        (["short"] * 9, "it must have 102,400 bytes; the server offers 102,399 (2 tries)"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_file_that_does_not_come_says_why_and_leaves_nothing(server, listed, tricks, reason):
    where = listed(a=(DATA, HASHED))
    server.tricks["/a"] = list(tricks)
    ended = only(fetch(["a"], **where, **QUICK))
    assert ended.status == "failed"
    assert ended.reason.startswith(reason)
    assert left(where["root"]) == []
    if tricks[0] in (403, 404):
        assert len(server.asked) == 1, "a refusal is no reason to ask again"


def test_ranges_are_asked_of_where_a_redirection_leads(server, listed):
    where = listed(a=(DATA, HASHED), b=(DATA, {}))
    server.tricks |= {"/a": ["to /b", "to /b"], "/b": ["drop"]}
    assert only(fetch(["a"], **where, **QUICK)).status == "resumed"
    assert server.ranges("/b") == [None, "bytes=51200-"]


def test_a_redirection_to_a_host_that_is_not_there_is_asked_twice(server, listed):
    where = listed(a=(DATA, HASHED))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server.tricks["/a"] = [f"to http://127.0.0.1:{unused.getsockname()[1]}/a"] * 9
    ended = only(fetch(["a"], **where, **QUICK))
    assert ended.reason == "the connection failed (Connection refused) (2 tries)"


def test_a_redirection_from_https_to_http_is_not_followed():
    step = SimpleNamespace(url="https://published.invalid/a")
    answer = SimpleNamespace(status_code=200, history=[step], url="http://other.invalid/a", headers={})
    with pytest.raises(FetchError, match=r"from https to plain http://other\.invalid/a, which is not"):
        network._check(answer)


def test_what_came_before_giving_up_is_gone_on_with_next_time(server, listed):
    where = listed(a=(DATA, {}))
    server.tricks["/a"] = ["drop", 404]
    ended = only(fetch(["a"], **where, **QUICK))
    assert (ended.status, ended.reason) == ("failed", "the server answers 404 Not Found")
    assert left(where["root"]) == ["a.part", "a.part.json"]
    assert only(fetch(["a"], **where, **QUICK)).status == "resumed"
    assert server.ranges("/a") == [None, "bytes=51200-", "bytes=51200-"]
    assert (where["root"] / "in/a").read_bytes() == DATA


@pytest.mark.parametrize("tag", ["", 'W/"weak"'])
def test_without_a_strong_validator_a_part_is_used_only_where_a_hash_will_tell(server, listed, tag):
    where = listed(a=(DATA, {}), b=(DATA, {"md5": hashlib.md5(DATA).hexdigest()[:8]}))
    for name in "ab":
        server.tags[f"/{name}"] = tag
        server.tricks[f"/{name}"] = ["drop"]
    assert [one.status for one in fetch(["a", "b"], **where, **QUICK).outcomes] == ["fetched", "resumed"]
    assert server.ranges("/a") == [None, None]
    assert server.ranges("/b") == [None, "bytes=51200-"]


def test_a_part_of_other_bytes_is_found_out_by_the_hash(server, listed):
    where = listed(a=(DATA, HASHED))
    part = where["root"] / "in/a.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    assert only(fetch(["a"], **where, **QUICK)).reason == ""
    assert server.ranges("/a") == ["bytes=1000-", None]
    assert (where["root"] / "in/a").read_bytes() == DATA


def test_a_part_that_was_whole_when_its_process_died_is_only_checked(server, listed):
    where = listed(a=(DATA, HASHED), b=(DATA, {}))
    (where["root"] / "in").mkdir(parents=True)
    for name in "ab":
        (where["root"] / "in" / f"{name}.part").write_bytes(DATA)
    notes = {"url": f"{server.url}/b", "validator": TAG, "total": len(DATA)}
    (where["root"] / "in" / "b.part.json").write_text(json.dumps(notes))
    assert fetch(["a", "b"], **where, **QUICK).counts["fetched"] == 2
    assert server.asked == []
    assert left(where["root"]) == ["a", "b"]


def test_a_part_longer_than_the_file_is_thrown_away(server, listed):
    where = listed(a=(DATA, HASHED))
    (where["root"] / "in").mkdir(parents=True)
    (where["root"] / "in/a.part").write_bytes(DATA + b"more")
    assert only(fetch(["a"], **where, **QUICK)).status == "fetched"
    assert server.ranges("/a") == [f"bytes={len(DATA) + 4}-", None]
    assert (where["root"] / "in/a").read_bytes() == DATA


def test_a_file_that_differs_stays_until_the_right_one_has_come(server, listed):
    where = listed(a=(DATA, HASHED))
    file = where["root"] / "in/a"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"mine")
    server.tricks["/a"] = [404]
    assert only(fetch(["a"], **where, **QUICK)).status == "failed"
    assert file.read_bytes() == b"mine"
    assert only(fetch(["a"], **where, **QUICK)).status == "fetched"
    assert file.read_bytes() == DATA


def test_files_come_at_the_same_time_and_are_reported_in_the_order_of_the_list(server, listed):
    names = [f"f{number}" for number in range(6)]
    where = listed(**{name: (DATA[:20000], {"group": ["all"]}) for name in names})
    for name in names:
        server.tricks[f"/{name}"] = ["slow"]
    server.tricks["/f3"] = [404]
    report = fetch(["all"], workers=3, **where, **QUICK)
    assert [one.file for one in report.outcomes] == [f"in/{name}" for name in names]
    assert report.counts == {"fetched": 5, "present": 0, "resumed": 0, "failed": 1}
    assert report.sentences() == ["5 fetched, 1 failed", "in/f3: the server answers 404 Not Found."]
    assert report.table()["reason"].tolist().count("") == 5
    assert server.most_at_once == 3


KILLED = """
import sys
from biastransfer.fetch import fetch
fetch(["a"], root=sys.argv[1], sources=sys.argv[2])
"""


def test_a_killed_fetch_goes_on_where_it_was(server, listed):
    where = listed(a=(DATA * 4, {"bytes": 4 * len(DATA), "sha256": sha(DATA * 4)}))
    server.tricks["/a"] = ["slow"]
    part = where["root"] / "in/a.part"
    running = subprocess.Popen([sys.executable, "-c", KILLED, str(where["root"]), str(where["sources"])])
    deadline = time.monotonic() + 20
    while not (part.is_file() and part.stat().st_size > 40_000):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()
    came = part.stat().st_size
    assert 40_000 < came < 4 * len(DATA)
    assert only(fetch(["a"], **where, **QUICK)).status == "resumed"
    assert server.ranges("/a") == [None, f"bytes={came}-"]
    assert (where["root"] / "in/a").read_bytes() == DATA * 4
    assert left(where["root"]) == ["a"]


def test_waits_double_and_are_bounded_whatever_a_server_asks_for(monkeypatch):
    asking, waits = network.Network(Settings(backoff=1.0)), []
    monkeypatch.setattr(asking.stop, "wait", lambda seconds: waits.append(seconds))
    for failures in range(1, 8):
        asking.wait(failures, 0.0)
    asking.wait(1, 3600.0)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    monkeypatch.setattr(asking.stop, "wait", lambda seconds: True)
    with pytest.raises(FetchError, match="stopped"):
        asking.wait(1, 0.0)


def test_two_processes_do_not_write_one_part(server, listed):
    import fcntl

    where = listed(a=(DATA, HASHED))
    (where["root"] / "in").mkdir(parents=True)
    with open(where["root"] / "in/a.part", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert only(fetch(["a"], **where, **QUICK)).reason == "another process is fetching it"
    assert only(fetch(["a"], **where, **QUICK)).status == "fetched"


def test_a_mirror_takes_the_place_of_scheme_and_host(server, listed):
    where = listed(a=(DATA, HASHED | {"url": "https://published.invalid/deep/a?v=1"}))
    server.files["/copies/deep/a?v=1"] = DATA
    assert only(fetch(["a"], mirror=f"{server.url}/copies/", **where, **QUICK)).status == "fetched"
    assert mirrored("http://a.org/b.csv", "https://c.org") == "https://c.org/b.csv"
    with pytest.raises(ValueError, match="a mirror must be an address as https://host/path; got 'c\\.org'"):
        fetch(["a"], mirror="c.org", **where)


def test_without_a_network_one_sentence_at_once(listed, monkeypatch):
    looked_up = socket.getaddrinfo

    def look_up(host, *rest):
        if host == "nowhere.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return looked_up(host, *rest)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{unused.getsockname()[1]}"
    hosts = [f"http://{closed}/a", "http://nowhere.invalid/b", f"http://{closed}/c"]
    where = listed(**{name: (b"x", {"url": url, "group": ["all"]}) for name, url in zip("abc", hosts)})
    began = time.monotonic()
    report = fetch(["all"], **where)
    assert time.monotonic() - began < 2
    assert report.sentences() == [
        "3 failed",
        f"{closed} (refuses the connection), nowhere.invalid (name does not resolve) must be reachable; "
        "connect to a network, or name a mirror that has the files.",
    ]
    assert left(where["root"]) == []


def test_a_host_that_never_answers_is_given_up_in_time(listed, monkeypatch):
    where = listed(a=(b"x", {}), b=(b"x", {}))
    waiting = threading.Event()

    def connect(*_args, **_kwargs):
        waiting.wait()
        raise OSError("too late")

    monkeypatch.setattr(socket, "create_connection", connect)
    began = time.monotonic()
    report = fetch(["a", "b"], connect_timeout=0.2, **where)
    assert time.monotonic() - began < 1
    assert len(report.failed) == 2
    assert "no answer within connect_timeout = 0.2 s" in report.sentences()[1]
    waiting.set()


def test_a_full_disk_is_said_before_anything_is_asked(server, listed, monkeypatch):
    where = listed(a=(DATA, HASHED), b=(DATA, {}))
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"must have 102,400 bytes free; it has 1,000\. Make room\."):
        fetch(["a"], **where)
    assert server.asked == []
    ended = only(fetch(["b"], **where, **QUICK))  # its size is not published: the server says it
    assert ended.reason == "the disk must have 102,400 bytes free; it has 1,000"


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["aa"], {}, r"unknown source 'aa'\. Did you mean 'a'\? Groups: ; files: a\."),
        (["a"], {"workers": 0}, "workers must be a whole number of at least 1; got 0"),
        (["a"], {"retries": -1}, "retries must be a whole number, 0 or more; got -1"),
        (["a"], {"timeout": "3"}, "timeout must be seconds, 0 or more; got '3'"),
    ],
)
def test_arguments_that_cannot_be(listed, names, options, message):
    with pytest.raises(ValueError, match=message):
        fetch(names, **listed(a=(b"x", {})), **options)
    assert Settings().retries == 5


def png(shade):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


def test_pictures_come_from_the_first_address_that_has_them(server, tmp_path):
    server.files |= {"/train/a.png": png(1), "/test/b.png": png(2), "/train/c.png": b"<html>no</html>"}
    wanted = {
        "train/a.png": f"{server.url}/train/a.png",
        "b.png": [f"{server.url}/{split}/b.png" for split in ("train", "test")],
        "c.png": [f"{server.url}/train/c.png", f"{server.url}/test/c.png"],
        "d.png": [f"{server.url}/train/d.png"],
        "e.png": [],
    }
    report = fetch_pictures(wanted, tmp_path, **QUICK)
    assert [one.status for one in report.outcomes] == ["fetched", "fetched", "failed", "failed", "failed"]
    assert (tmp_path / "b.png").read_bytes() == png(2)
    reasons = [one.reason for one in report.failed]
    assert reasons[0].startswith("a picture file must hold a picture; this is a web page")
    assert reasons[1:] == ["the server answers 404 Not Found", "no address is known"]
    assert left(tmp_path) == ["a.png", "b.png"]
    assert fetch_pictures(wanted, tmp_path, **QUICK).counts["present"] == 2


@pytest.mark.parametrize("name", ["../a.png", "/a.png", "train/../../a.png"])
def test_a_picture_never_goes_outside_its_folder(tmp_path, name):
    with pytest.raises(ValueError, match=r"a picture's path must lie below its folder; got "):
        fetch_pictures({name: "http://published.invalid/a.png"}, tmp_path)

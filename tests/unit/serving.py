"""A local server that does what servers do to downloads; each path has a list of tricks, one a request."""

import contextlib
import re
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TAG = '"one"'


class Server(ThreadingHTTPServer):
    """``files``: path → bytes. ``tricks``: path → what to do at the first request, the second, …"""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.tricks, self.tags = {}, defaultdict(list), defaultdict(lambda: TAG)
        self.asked = []  # (path, Range header or None)
        self.most_at_once, self.at_once, self.lock = 0, 0, threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def ranges(self, path):
        return [span for asked, span in self.asked if asked == path]

    def handle_error(self, request, client_address):
        """Say nothing: dropped connections are the point."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        with server.lock:
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
            server.asked.append((self.path, self.headers.get("Range")))
            trick = server.tricks[self.path].pop(0) if server.tricks[self.path] else ""
        try:
            self._answer(trick)
        finally:
            with server.lock:
                server.at_once -= 1

    def _answer(self, trick):
        if isinstance(trick, int):
            return self._plain(trick)
        if trick.startswith("to "):
            return self._plain(302, Location=trick[3:])
        if trick.startswith("later "):
            return self._plain(429, **{"Retry-After": trick[6:]})
        data = self.server.files.get(self.path)
        if data is None:
            return self._plain(404)
        if trick == "wrong bytes":
            data = bytes(one ^ 255 for one in data)
        tag = '"two"' if trick == "another tag" else self.server.tags[self.path]
        start = self._start(trick, tag)
        if start is not None and start >= len(data):
            return self._plain(416)
        self.send_response(200 if start is None else 206)
        body = data[start or 0 :]
        if start is not None:
            at = start - (trick == "another place")
            self.send_header("Content-Range", f"bytes {at}-{len(data) - 1}/{len(data)}")
        if tag:
            self.send_header("ETag", tag)
        if trick == "zipped":
            self.send_header("Content-Encoding", "gzip")
        self._body(trick, body)

    def _start(self, trick, tag):
        """The first byte to send, or None for the whole file."""
        span = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not span or trick == "no ranges":
            return None
        condition = self.headers.get("If-Range")
        return int(span[1]) if condition in (None, tag) or trick in ("another tag", "another place") else None

    def _body(self, trick, body):
        if trick == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (body[: len(body) // 2], body[len(body) // 2 :]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body) - 1 if trick == "short" else len(body)))
        self.end_headers()
        half = len(body) // 2
        if trick == "drop":
            self.wfile.write(body[:half])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
        elif trick == "stall":
            self.wfile.write(body[:half])
            self.wfile.flush()
            time.sleep(1.2)
        elif trick == "drip":
            for one in body[:60]:
                self.wfile.write(bytes([one]))
                time.sleep(0.02)
        elif trick == "slow":
            for at in range(0, len(body), 4096):
                self.wfile.write(body[at : at + 4096])
                self.wfile.flush()
                time.sleep(0.02)
        else:
            self.wfile.write(body[:-1] if trick == "short" else body)

    def _plain(self, code, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        """Say nothing."""


@contextlib.contextmanager
def serving():
    """Run a server for the length of a block."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()

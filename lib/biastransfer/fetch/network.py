"""Asking servers: which hosts answer, what an answer means, and that no body stalls or ends unnoticed."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests
import urllib3
from requests.utils import get_environ_proxies, prepend_scheme_if_needed, select_proxy

_CHUNK = 2**16
_SLOWEST = 1024  # bytes a second over `timeout`: less is a stall
_LONGEST_WAIT = 30.0  # seconds between two tries, whatever a server asks for
_CONNECT = 10.0  # seconds, once a host has answered
UNREACHABLE = " must be reachable; connect to a network, or name a mirror that has the files"
_PASSING = {408, 425, 429}  # and all of 5xx


@dataclass(frozen=True)
class Settings:
    """How patient a fetch is.

    Attributes
    ----------
    retries : int
        Further tries after a failure that may pass; one that brought a mebibyte forward does not count.
    timeout : float
        Seconds without a byte, or at under 1 KiB a second, before a connection counts as stalled.
    connect_timeout : float
        Seconds a host has to answer at all.
    backoff : float
        Seconds before the first further try; doubled each time, 30 at most.
    """

    retries: int = 5
    timeout: float = 30.0
    connect_timeout: float = 1.3
    backoff: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is no number of tries or seconds."""
        if type(self.retries) is not int or self.retries < 0:
            raise ValueError(f"retries must be a whole number, 0 or more; got {self.retries!r}.")
        for name in ("timeout", "connect_timeout", "backoff"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ValueError(f"{name} must be seconds, 0 or more; got {value!r}.")


class FetchError(Exception):
    """Why a file did not come, in words; ``tries`` more may help (None: as many as the settings allow)."""

    def __init__(self, reason: str, tries: int | None = 0, wait: float = 0.0, code: int = 0):
        """Keep the reason, how often to try again, after how many seconds, and the server's status."""
        super().__init__(reason)
        self.tries, self.wait, self.code = tries, wait, code


class Network:
    """Sessions, one a thread, and what is known of each host; ``stop`` ends all of it early."""

    def __init__(self, settings: Settings):
        """Know nothing yet."""
        self.settings = settings
        self.stop = threading.Event()
        self._own = threading.local()
        self._hosts: dict[tuple[str, int], str] = {}
        self._asking: dict[tuple[str, int], threading.Lock] = {}

    def get(self, url: str, headers: dict[str, str]) -> requests.Response:
        """Return an open answer with status 200, 206 or 416.

        Parameters
        ----------
        url : str
        headers : dict of str to str

        Raises
        ------
        FetchError
            An unreachable host, a server's refusal, a broken connection.
        """
        if problem := self._unreachable(url):
            raise FetchError(f"{urlsplit(url).netloc} ({problem}){UNREACHABLE}")
        try:
            answer = self._session().get(
                url, headers=headers, stream=True, timeout=(_CONNECT, self.settings.timeout or None)
            )
        except requests.exceptions.SSLError as problem:
            raise FetchError(f"the server's certificate is not accepted ({_cause(problem)})") from problem
        except (requests.ConnectionError, requests.Timeout) as problem:
            tries = 1 if isinstance(_cause(problem), urllib3.exceptions.NewConnectionError) else None
            raise FetchError(f"the connection failed ({_words(problem)})", tries) from problem
        except requests.RequestException as problem:
            raise FetchError(f"the address leads nowhere ({problem})") from problem
        try:
            _check(answer)
        except FetchError:
            answer.close()
            raise
        return answer

    def chunks(self, answer: requests.Response) -> Iterator[bytes]:
        """Yield an ``answer``'s body as it comes.

        Raises
        ------
        FetchError
            A stall, a broken connection, or `stop`.
        """
        began, got = time.monotonic(), 0
        while True:
            if self.stop.is_set():
                raise FetchError("stopped")
            try:
                data = answer.raw.read1(_CHUNK, decode_content=False)
            except urllib3.exceptions.ReadTimeoutError as problem:
                raise FetchError(f"no byte came for {self.settings.timeout:g} s", None) from problem
            except (urllib3.exceptions.HTTPError, OSError) as problem:
                raise FetchError(f"the connection broke ({_words(problem)})", None) from problem
            if not data:
                return
            yield data
            got += len(data)
            passed = time.monotonic() - began
            if self.settings.timeout and passed >= self.settings.timeout:
                if got < _SLOWEST * passed:
                    raise FetchError(f"only {got:,} bytes came in {passed:.1f} s", None)
                began, got = time.monotonic(), 0

    def wait(self, failures: int, asked: float) -> None:
        """Wait before another try: longer after each of ``failures``, or as long as the server ``asked``."""
        seconds = max(self.settings.backoff * 2 ** (failures - 1), asked)
        if self.stop.wait(min(seconds, _LONGEST_WAIT)):
            raise FetchError("stopped")

    def _session(self) -> requests.Session:
        if not hasattr(self._own, "session"):
            self._own.session = requests.Session()
            self._own.session.headers["User-Agent"] = "biastransfer"
            self._own.session.headers["Accept-Encoding"] = "identity"  # ranges and sizes are of the file
        return self._own.session

    def _unreachable(self, url: str) -> str:
        """Say why a host, or the proxy before it, cannot be reached; each is asked once."""
        place = _asked(url)
        with self._asking.setdefault(place, threading.Lock()):
            if place not in self._hosts:
                self._hosts[place] = _no_connection(*place, self.settings.connect_timeout)
            return self._hosts[place]


def _asked(url: str) -> tuple[str, int]:
    """Return host and port that a request for ``url`` connects to."""
    proxy = select_proxy(url, get_environ_proxies(url))
    place = urlsplit(prepend_scheme_if_needed(proxy, "http") if proxy else url)
    return place.hostname or "", place.port or (443 if place.scheme == "https" else 80)


def _no_connection(host: str, port: int, patience: float) -> str:
    """Say why no connection came about within ``patience`` seconds, or nothing.

    In a thread of its own: nothing bounds how long the system looks up a name.
    """
    said: list[str] = []

    def ask() -> None:
        for last in (False, True):
            try:
                socket.create_connection((host, port), timeout=patience).close()
                return said.append("")
            except socket.gaierror:
                problem = "name does not resolve"
            except ConnectionRefusedError:
                problem = "refuses the connection"
            except OSError as error:
                problem = (error.strerror or str(error)).lower()
            if last:
                return said.append(problem)
            time.sleep(min(0.2, patience / 4))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return said[0] if said else f"no answer within connect_timeout = {patience:g} s"


def _check(answer: requests.Response) -> None:
    """Raise for an answer that is no file."""
    code = answer.status_code
    if any(step.url.startswith("https:") for step in answer.history) and answer.url.startswith("http:"):
        raise FetchError(f"the server sends on from https to plain {answer.url}, which is not followed")
    if code in _PASSING or code >= 500:
        raise FetchError(f"the server answers {code} {answer.reason}", None, _retry_after(answer), code)
    if code not in (200, 206, 416):
        raise FetchError(f"the server answers {code} {answer.reason}", code=code)
    encoding = answer.headers.get("Content-Encoding", "identity")
    if code != 416 and encoding != "identity":
        raise FetchError(f"the server must send the file as it is; it sends it as {encoding}")


def _retry_after(answer: requests.Response) -> float:
    """Return the seconds that a server asks to wait; dates count as none."""
    with contextlib.suppress(ValueError):
        return max(float(answer.headers.get("Retry-After", 0)), 0.0)
    return 0.0


def _cause(problem: Exception) -> object:
    """Return what urllib3 says lies behind a failed request."""
    first = problem.args[0] if problem.args else problem
    return getattr(first, "reason", None) or first


def _words(problem: Exception) -> str:
    """Return the innermost cause in few words: the system's own where it has some."""
    cause = _cause(problem)
    for one in (getattr(cause, "__cause__", None), *problem.args, *getattr(cause, "args", ())):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    said = (*problem.args[::-1], *getattr(cause, "args", ())[::-1])
    inner = next((one for one in said if isinstance(one, Exception)), cause)
    return str(inner) or type(inner).__name__

"""Reads for polling, through one `kubectl proxy`: a kubectl process per poll would use half of a small machine's
processors."""

import http.client
import json
import re
import subprocess
import threading
import urllib.parse

SECONDS = 60  # timeout of one request


class ApiError(Exception):
    """The API server refused, or could not be reached. `status`: the HTTP status, None without an answer."""

    def __init__(self, words, status=None):
        super().__init__(words)
        self.status = status


class Api:
    """GET by kubectl's names of kinds: plural, singular or short. Thread-safe."""

    def __init__(self, kubectl, environment):
        self._kubectl = kubectl
        self._environment = environment
        self._places = {}
        self._local = threading.local()
        # The proxy ends with this process, even if this process is killed.
        self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", kubectl, "proxy", "--port=0"],
                                         env=environment, text=True, stdout=subprocess.PIPE)
        line = self._process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if not found:
            raise ApiError(f"kubectl proxy: {line.strip()}")
        self.port = int(found[1])

    def close(self):
        self._process.kill()
        self._process.wait()

    def text(self, path, **query):
        """The answer to GET PATH?QUERY. Query values that are None are left out."""
        query = urllib.parse.urlencode({key: value for key, value in query.items() if value is not None})
        target = f"{path}?{query}" if query else path
        try:
            status, body = self._ask(target)
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(f"GET {target}: {error!r}") from None
        if status != 200:
            raise ApiError(f"GET {target}: {status} {body.strip()[:1000]}", status)
        return body

    def _ask(self, target):
        """Uses this thread's connection; retries once on a new one if the old one was closed."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            try:
                return self._ask_on(connection, target)
            except (OSError, http.client.HTTPException):
                connection.close()
        self._local.connection = None
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        answer = self._ask_on(connection, target)
        self._local.connection = connection
        return answer

    @staticmethod
    def _ask_on(connection, target):
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    def json(self, path, **query):
        return json.loads(self.text(path, **query))

    def path(self, kind, namespace=None, name=None):
        """The URL path of a kind, in one namespace or in all, or of one object."""
        if kind not in self._places:
            self._learn()
        if kind not in self._places:
            raise ApiError(f'the server doesn\'t have a resource type "{kind}"')
        prefix, plural, namespaced = self._places[kind]
        where = f"/namespaces/{namespace}" if namespace and namespaced else ""
        return f"{prefix}{where}/{plural}" + (f"/{name}" if name else "")

    def _learn(self):
        done = subprocess.run([self._kubectl, "api-resources", "--no-headers"], env=self._environment, text=True,
                              capture_output=True, check=False, timeout=SECONDS)
        for line in done.stdout.splitlines():
            plural, *short, version, namespaced, kind = line.split()
            place = (f"/apis/{version}" if "/" in version else f"/api/{version}", plural, namespaced == "true")
            for name in (plural, kind.lower(), *(short[0].split(",") if short else [])):
                self._places.setdefault(name, place)  # the core group comes first, as for kubectl

"""What is asked again and again, through one `kubectl proxy`: a program started for every look of every poll would take
half of a small machine from what the tests watch."""

import http.client
import json
import re
import subprocess
import threading
import urllib.parse

SECONDS = 60  # for one answer


class ApiError(Exception):
    """The API server (or the way to it) said no. `status` is HTTP's, None where there was no answer."""

    def __init__(self, words, status=None):
        super().__init__(words)
        self.status = status


class Api:
    """GET, by the names that kubectl takes: plural, singular or short. Threads may share it."""

    def __init__(self, kubectl, environment):
        self._kubectl = kubectl
        self._environment = environment
        self._places = {}
        self._local = threading.local()
        # It ends with us, whatever ends us.
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
        """The answer to GET PATH?QUERY; without the values that are None."""
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
        """On this thread's connection; once more on a new one, should the old one have gone meanwhile."""
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
        """Where a kind is, in a namespace or in all, or one object of it."""
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

"""Web servers on loopback for tests: nginx with a certificate and a password, and servers that do less."""

import contextlib
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request

from conftest import wait_until

_NGINX = """
{user}daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 128; }}
http {{
  log_format short '$request_method $request_uri $status'; access_log {folder}/access.log short;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  root {root}; default_type application/octet-stream; gzip on; gzip_types *; gzip_min_length 1;
  server {{ listen 127.0.0.1:{port}; }}
  server {{
    listen 127.0.0.1:{tls_port} ssl; ssl_certificate {folder}/ca.crt; ssl_certificate_key {folder}/key.pem;
    auth_basic "data"; auth_basic_user_file {folder}/users;
  }}
}}
"""

_MARK = "/__mark"  # no file has this name


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def index_of(root, columns=r"%s\t%P\t%T@\n"):
    """Writes index.txt as docs/howto/web-server.md says."""
    command = f"find . -type f -printf '{columns}' > index.txt"
    subprocess.run(command, shell=True, cwd=root, check=True)


class Nginx:
    """nginx over the folder `root`, by http and, with user me and password pass word, by https. `with` stops it."""

    def __init__(self, folder, root):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        port, tls_port = free_port(), free_port()
        self.uri, self.tls_uri = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
        self.ca_file = str(self.folder / "ca.crt")
        self._marks = 0
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=private",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.folder / "key.pem", "-out", self.ca_file],
            check=True, capture_output=True)
        (self.folder / "users").write_text("me:{PLAIN}pass word\n")
        (self.folder / "secret").mkdir()
        (self.folder / "secret" / "username").write_text("me")
        (self.folder / "secret" / "password").write_text("pass word")
        user = "user root; " if os.geteuid() == 0 else ""  # its workers read the test's folder
        (self.folder / "nginx.conf").write_text(
            _NGINX.format(user=user, folder=self.folder, root=root, port=port, tls_port=tls_port))
        program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        self.process = subprocess.Popen(
            [program, "-p", self.folder, "-c", self.folder / "nginx.conf"], stderr=subprocess.DEVNULL)
        wait_until("nginx", lambda: self._answers(port) and self._answers(tls_port))

    @staticmethod
    def _answers(port):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    def requests(self):
        """[(method, path, status)] so far. nginx writes a line after its answer, and its only worker takes one event at a
        time: when a request of ours is in the log, all before it are."""
        self._marks += 1
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"{self.uri}{_MARK}").close()

        def lines():
            return [tuple(line.split()) for line in (self.folder / "access.log").read_text().splitlines()]

        wait_until("the access log", lambda: sum(path == _MARK for _, path, _ in lines()) == self._marks)
        return [line for line in lines() if line[1] != _MARK]

    def count(self, method, status):
        """Requests of that method and status, the index left out."""
        return sum(
            (asked, answer) == (method, status) and path != "/index.txt" for asked, path, answer in self.requests())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def canned_server(headers, body=b"meow"):
    """Answers each GET and HEAD with the lines `headers` and `body`, and closes. Yields its URL."""
    class Canned(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            is_get = self.command == "GET"
            self.wfile.write("\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode() + body * is_get)

        do_HEAD = do_GET

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canned) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextlib.contextmanager
def plain_server(root):
    """Python's web server, which ignores ranges and conditions and sends no ETag. Yields its URL."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(root))

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # a sidecar opens many connections at once

    with Server(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

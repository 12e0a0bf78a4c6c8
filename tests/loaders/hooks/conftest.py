"""The fixtures of the client's tests, for tests that need packages of PyPI."""

import importlib.util
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[3] / "client" / "tests"
sys.path.insert(0, str(TESTS))
spec = importlib.util.spec_from_file_location("client_conftest", TESTS / "conftest.py")
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)

origin, sidecar = client.origin, client.sidecar

"""The Python encoding of the local protocol produces the golden frames, and decodes them."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "client" / "tests"))

import wire  # noqa: E402  (found through the path above)

VECTORS = json.loads((ROOT / "tests" / "contract" / "golden" / "protocol.json").read_text())["vectors"]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_frames_encode_to_the_golden_bytes(vector):
    frame = wire.ENCODERS[vector["type"]](int(vector["request_id"]), **vector["fields"])
    assert frame.hex() == vector["frame"]


def decodable(vector):
    return vector["type"] in [name for name, _ in wire.DECODERS.values()]


@pytest.mark.parametrize("vector", filter(decodable, VECTORS), ids=lambda vector: vector["name"])
def test_client_frames_decode(vector):
    frame = bytes.fromhex(vector["frame"])
    size, kind, flags, request_id = wire.HEADER.unpack(frame[: wire.HEADER.size])
    payload = frame[wire.HEADER.size :]
    name, decode = wire.DECODERS[kind]
    assert (size, flags, str(request_id), name) == (len(payload), 0, vector["request_id"], vector["type"])
    assert {**decode(payload), **vector["fields"]} == decode(payload)


def test_every_message_has_a_vector():
    assert {vector["type"] for vector in VECTORS} == set(wire.ENCODERS)

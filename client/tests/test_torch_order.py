"""The orders that sidecars expect of programs with torch: golden vectors for every implementation."""

import json
import pathlib

import pytest
import stoker.torch
from torch.utils.data import DistributedSampler

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "contract" / "golden" / "order.json"


@pytest.mark.parametrize("sampler", [DistributedSampler, stoker.torch.Sampler])
@pytest.mark.parametrize("vector", json.loads(GOLDEN.read_text())["torch"])
def test_torch_orders_equal_the_golden_ones(sampler, vector):
    arguments = vector["arguments"]
    order = sampler(range(arguments["count"]), num_replicas=arguments["world_size"], rank=arguments["rank"],
                    seed=arguments["seed"], drop_last=arguments.get("drop_last", False))
    order.set_epoch(arguments["epoch"])
    assert list(order) == vector["ids"]

"""Sampling contracts from the TrainingJob to the trainer: what it was given, and what that cost at the origin."""

import json

from harness import jobs, origin as origins
from harness.jobs import FULL
from harness.kube import wait_until


def contract_job(name, contract, args=(), cache=FULL, **parameters):
    item = jobs.training_job(name, ["--epochs", 4, *args], cache=cache, script="read_contract.py")
    item["spec"]["datasets"] = [{"name": "train", "datasetRef": {"name": "mnist"}, "contract": contract, **parameters}]
    return item


def said(namespace, name, event):
    text = namespace.kube.logs(namespace.pods(name)[0]["metadata"]["name"], namespace.name, "trainer")
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_a_windowed_and_an_importance_job_share_one_fetch_of_a_dataset(namespace, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    namespace.apply(
        contract_job("windowed", "Windowed"),
        contract_job("important", "Importance", importance={"beta": 1, "warmupEpochs": 1, "reuseFactor": 100}))
    namespace.wait_complete("windowed")
    namespace.wait_complete("important")

    windowed = said(namespace, "windowed", "epoch")
    assert [epoch["contract"] for epoch in windowed] == ["windowed"] * 4
    for epoch in windowed:
        assert epoch["once"] == epoch["requested"] == origins.SAMPLES and epoch["alone"] == 0

    important = said(namespace, "important", "epoch")
    assert [epoch["contract"] for epoch in important] == ["importance"] * 4
    assert important[0]["once"] == origins.SAMPLES, "the warm-up reads all"
    last = important[-1]
    assert last["losses_used"] == last["requested"] < 0.75 * origins.SAMPLES, "half of the samples at beta 1"
    assert last["high"] > 0.6 * last["requested"], "what has the higher loss is read more often"
    assert all(epoch["wrong"] == 0 for epoch in windowed + important), "data, label and id are one sample's"
    # On two nodes, or when one begins before the other's grant, a sample may be fetched twice; never once an epoch.
    assert origins.SAMPLES <= origin.since(mark).gets <= 2 * origins.SAMPLES

    for name, contract in (("windowed", "Windowed"), ("important", "Importance")):
        assert namespace.job(name)["spec"]["datasets"][0]["contract"] == contract
        wait_until(f"the status of {name} to tell what it keeps",
                   lambda job=name: namespace.job(job)["status"]["cache"]["usedBytes"] > 0, 120)


def test_a_program_that_asks_for_more_than_its_job_allows_is_told_what_it_may(namespace):
    namespace.apply(jobs.dataset(), contract_job("wider", "Windowed", ["--contract", "importance"]))
    namespace.wait_condition("trainingjob", "wider", "Failed", "True")
    refused, = said(namespace, "wider", "refused")
    assert "allows contract 'windowed'" in refused["why"] and "'windowed' or 'exact'" in refused["why"]


def test_the_example_learns_by_importance(namespace):
    item = contract_job("digits", "Importance", importance={"beta": 0.33, "warmupEpochs": 2, "reuseFactor": 5})
    item["spec"]["trainer"]["command"] = ["python3", "-u", "mnist/train_importance.py", "--epochs", "5"]
    namespace.apply(jobs.dataset(), item)
    namespace.wait_complete("digits", 900)
    epochs = said(namespace, "digits", "epoch")
    assert epochs[-1]["test_accuracy"] > 0.85
    assert epochs[2]["requested"] < origins.SAMPLES == epochs[0]["requested"]

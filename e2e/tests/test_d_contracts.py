"""Sampling contracts end to end: the samples that the trainer got, and the requests to the origin."""

import json

from harness import jobs, origin as origins
from harness.jobs import FULL
from harness.kube import wait_until


def reads(contract, **parameters):
    """The epoch reports of a job with this contract."""
    return {"script": "read_contract.py", "cache": FULL,
            "datasets": [{"name": "train", "datasetRef": {"name": "mnist"}, "contract": contract, **parameters}]}


def said(namespace, name, event):
    text = namespace.kube.logs(namespace.pods(name)[0]["metadata"]["name"], namespace.name, "trainer")
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_a_windowed_and_an_importance_job_share_one_fetch_of_a_dataset(namespace, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    leader, = namespace.start("windowed", ["--epochs", 4, "--hold", "4:0"], **reads("Windowed"))
    namespace.apply(jobs.training_job(
        "important", ["--epochs", 4], on=namespace.home,
        **reads("Importance", importance={"beta": 1, "warmupEpochs": 1, "reuseFactor": 100})))
    namespace.wait_complete("important")
    namespace.wait_hold(leader, "4:0")
    namespace.go(leader, "4:0")
    namespace.wait_complete("windowed")

    windowed = said(namespace, "windowed", "epoch")
    assert [epoch["contract"] for epoch in windowed] == ["windowed"] * 4
    for epoch in windowed:
        assert epoch["once"] == epoch["requested"] == origins.SAMPLES and epoch["alone"] == 0

    important = said(namespace, "important", "epoch")
    assert [epoch["contract"] for epoch in important] == ["importance"] * 4
    assert important[0]["once"] == origins.SAMPLES, "the warm-up reads all"
    last = important[-1]
    assert last["losses_used"] > 0 and last["requested"] < 0.75 * origins.SAMPLES, "about half of the samples are kept at beta 1"
    assert last["high"] > 0.6 * last["requested"], "samples with a higher loss are read more often"
    assert all(epoch["wrong"] == 0 for epoch in windowed + important), "data, label and id belong to one sample"
    gets = origin.since(mark).gets
    assert origins.SAMPLES <= gets <= origins.SAMPLES + 1, "one fetch for both jobs; the follower sends one more GET to prove its access"
    wait_until("the status to show the kept samples",
               lambda: namespace.job("windowed")["status"].get("cache", {}).get("usedBytes", 0) > 0, 120)


def test_a_program_with_a_wider_contract_than_its_job_gets_an_error(namespace):
    namespace.apply(jobs.dataset(), jobs.training_job("wider", ["--contract", "importance"], **reads("Windowed")))
    namespace.wait_condition("trainingjob", "wider", "Failed", "True")
    refused, = said(namespace, "wider", "refused")
    assert "allows contract 'windowed'" in refused["why"] and "'windowed' or 'exact'" in refused["why"]


def test_the_example_learns_by_importance(namespace):
    item = jobs.training_job(
        "digits", [], **reads("Importance", importance={"beta": 0.33, "warmupEpochs": 2, "reuseFactor": 5}))
    item["spec"]["trainer"]["command"] = ["python3", "-u", "mnist/train_importance.py", "--epochs", "5"]
    namespace.apply(jobs.dataset(), item)
    namespace.wait_complete("digits", 900)
    epochs = said(namespace, "digits", "epoch")
    assert epochs[-1]["test_accuracy"] > 0.85
    assert epochs[2]["requested"] < origins.SAMPLES == epochs[0]["requested"]

"""A Dataset with spec.packing: the operator packs it, and a job that is applied with it trains from the chunks."""

from harness import jobs, origin as origins


def test_a_job_trains_from_chunks_that_the_operator_packs(namespace, origin):
    target = origin.bucket(f"{namespace.name}-packed").create()
    raw = {"storageUri": f"s3://{origins.BUCKET}", "endpoint": origins.UNPACED, "secretRef": {"name": "s3"}}
    namespace.apply(jobs.dataset("packed", f"s3://{target.name}", origins.UNPACED, format="Chunks",
                                 packing={"from": raw, "chunkBytes": "256Ki"}))
    pods = namespace.start("trains", ["--epochs", 1], dataset_name="packed", cache=jobs.FULL)
    namespace.wait_complete("trains")
    assert [epoch["distinct"] for epoch in namespace.epochs(pods[0])] == [origins.SAMPLES]
    packing = namespace.dataset_status("packed")["packing"]
    assert (packing["samples"], packing["bytes"]) == (origins.SAMPLES, sum(origin.sizes()))
    assert packing["chunks"] + 1 == len(origin.sizes(target.name)), "the bucket holds the chunks and the index"
    assert packing["job"] in [job["metadata"]["name"] for job in namespace.kube.list("jobs", namespace.name)]

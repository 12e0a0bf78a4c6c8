"""Real training on real data: the cache changes the time, not the model."""

from harness import jobs

EPOCHS = 3


def train(namespace, caches, seed):
    """Runs of the example, one for each cache, beside each other on one node (other processors may round otherwise). What
    each printed: streams, weights, accuracies."""
    for name, cache in caches.items():
        namespace.apply(jobs.training_job(name, ["--epochs", EPOCHS, "--seed", seed], script="mnist_stream.py", cache=cache,
                                          on=namespace.home))
    for name in caches:
        namespace.wait_complete(name, 900)
        lines = namespace.lines(namespace.pods(name)[0]["metadata"]["name"])
        yield [[line[key] for line in lines if line["event"] == event] for event, key in (
            ("fed", "stream"), ("fed", "weights"), ("epoch", "test_accuracy"))]


def test_accuracy_with_the_cache_equals_accuracy_without(namespace):
    """One seed, one stream, by digest of what the model was fed; and one stream makes one model, to the last bit."""
    namespace.apply(jobs.dataset())
    with_cache, without = train(namespace, {"with": jobs.FULL, "without": jobs.OFF}, 1)
    streams, weights, accuracies = with_cache
    streams_without, weights_without, accuracies_without = without
    assert len(set(streams)) == len(set(weights)) == EPOCHS, "each epoch has an order of its own and teaches something"
    assert streams == streams_without
    assert weights == weights_without
    assert accuracies == accuracies_without
    assert accuracies[-1] > 0.85, "it learns at all"

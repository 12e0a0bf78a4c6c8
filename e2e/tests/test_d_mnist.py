"""Real training on real data: the cache changes the time, not the model."""

from harness import jobs

EPOCHS = 3


def train(namespace, caches, seed):
    """Runs the example once per cache mode, all on one node (other processors may round differently). Returns what each
    printed: streams, weights, accuracies."""
    for name, cache in caches.items():
        namespace.apply(jobs.training_job(name, ["--epochs", EPOCHS, "--seed", seed], script="mnist_stream.py", cache=cache,
                                          on=namespace.home))
    for name in caches:
        namespace.wait_complete(name, 900)
        lines = namespace.lines(namespace.pods(name)[0]["metadata"]["name"])
        yield [[line[key] for line in lines if line["event"] == event] for event, key in (
            ("fed", "stream"), ("fed", "weights"), ("epoch", "test_accuracy"))]


def test_accuracy_with_the_cache_equals_accuracy_without(namespace):
    """The same seed gives the same stream (digest of the model's input), and the same weights to the last bit."""
    namespace.apply(jobs.dataset())
    with_cache, without = train(namespace, {"with": jobs.FULL, "without": jobs.OFF}, 1)
    streams, weights, accuracies = with_cache
    streams_without, weights_without, accuracies_without = without
    assert len(set(streams)) == len(set(weights)) == EPOCHS, "each epoch has a different order and changes the weights"
    assert streams == streams_without
    assert weights == weights_without
    assert accuracies == accuracies_without
    assert accuracies[-1] > 0.85, "the model learns"

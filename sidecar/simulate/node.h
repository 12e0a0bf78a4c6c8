#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

using domain::SampleIndex;
using sidecar::Draw;

// One batch that a job has drawn and not consumed yet.
struct Batch {
    std::uint64_t number = 0;  // within the job, over all epochs
    std::vector<Draw> draws;
    std::vector<bool> hits;  // by draw: nothing was fetched for it
    std::optional<TimePoint> ready;
};

// Samples of a job's current epoch, for a node that keeps what somebody still needs.
struct EpochStart {
    std::size_t job = 0;
    std::uint64_t epoch = 0;
    bool reads_all = false;  // each sample exactly once, in whatever order
};

// The node between jobs and origin: keeps samples, fetches the others, in simulated time. All times
// that it is given never go back. Tells every sampler what is stored and what is gone. Not
// thread-safe.
class Node {
public:
    struct Answer {
        std::size_t job = 0;
        std::uint64_t batch = 0;
        TimePoint at{};
    };

    virtual ~Node() = default;

    virtual void begin_epoch(const EpochStart& start, TimePoint now) = 0;

    // The job's next draws will be these, in this order: fetches ahead of need what is absent. The
    // first read of it is no hit. Replaces what the job foresaw before.
    virtual void foresee(
        std::size_t job,
        std::span<const SampleIndex> samples,
        EpochFigures& figures,
        TimePoint now) = 0;

    // The job will draw these, each as often as it is named: what passes through is kept until
    // then.
    virtual void expect(std::size_t /*job*/, std::span<const SampleIndex> /*samples*/) {}

    // Fills batch.hits and counts in `figures`; the answer comes from take_answers().
    virtual void request(std::size_t job, Batch& batch, EpochFigures& figures, TimePoint now) = 0;
    virtual void consume(
        std::size_t job, const Batch& batch, EpochFigures& figures, TimePoint now) = 0;

    // When advance() has to be called next.
    [[nodiscard]] virtual std::optional<TimePoint> next_event() const = 0;
    virtual void advance(TimePoint now) = 0;

    virtual std::vector<Answer> take_answers() = 0;
};

}  // namespace stoker::simulate

#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sidecar/advise/advise.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::advise {

// Replays one trace through the simulator with several caches. `shape` must outlive it. Pure.
class Replay {
public:
    // `question` must be valid, as checked by advise().
    Replay(const Trace& trace, const Shape& shape, const Question& question);

    // Runs with a cache of `size`; policy "": the sidecar's default, else one of the simulator's.
    [[nodiscard]] Result<Run> with_cache(Bytes size, std::string_view policy) const;

    // Reads at the origin only, without a sidecar.
    [[nodiscard]] Result<Run> without_cache() const;

    // Origin bytes that as many reads of the same samples cost under another contract.
    [[nodiscard]] Result<Bytes> under_contract(Bytes size, std::string_view contract) const;

    // Bytes of all samples on the node, headers and padding included.
    [[nodiscard]] Bytes dataset_on_node() const { return on_node_; }

    // Seconds until a reader has an epoch's first batch from the origin, without a cache.
    [[nodiscard]] double first_batch_seconds() const;

    // Samples per second that all readers together compute.
    [[nodiscard]] double compute_rate() const { return base_.samples_per_second * readers_; }

private:
    [[nodiscard]] simulate::Scenario scenario(Bytes size, std::string_view policy) const;

    const Shape& shape_;
    double epochs_ = 1;  // epochs of each reader that reads everything; the last may be incomplete
    Bytes window_;
    std::uint32_t workers_;
    Bytes on_node_{};
    double readers_ = 1;
    simulate::Scenario base_;  // the trace's reads; the cache is not set
};

}  // namespace stoker::advise

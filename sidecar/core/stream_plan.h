#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// A change of a plan: `samples` replace all positions from `from` on. `from` 0: a whole plan.
struct PlanTail {
    std::uint32_t from = 0;
    std::vector<SampleIndex> samples;
};

// The samples that one stream will read in one epoch, in order, and which of them it has read. A
// sample may occur more than once (padding, draws with replacement); its occurrences are read in
// plan order. Takes 8 bytes and 1 bit per position. Pure value; not thread-safe.
//
// The epoch's own positions may be followed by the first positions of the next epoch, so that
// prefetching crosses the boundary; these cannot be read in this epoch and do not count as
// progress. Seed and number of epochs determine the order ("clairvoyance": NoPFS, section 3).
class StreamPlan {
public:
    // Positions before `start` count as read (a resume in mid-epoch). The last `ahead` samples
    // belong to the next epoch. Sorts an index: O(n log n), so build it off the engine's thread;
    // O(n) if it has every sample once. kInvalidArgument: an id at or above `sample_count`, `start`
    // past the epoch's end, more `ahead` than there are samples, 2^32 positions.
    static Result<StreamPlan> make(
        std::uint64_t epoch,
        std::vector<SampleIndex> samples,
        std::uint64_t start,
        std::uint64_t sample_count,
        std::uint64_t ahead = 0);

    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

    // Number of the epoch's own positions.
    [[nodiscard]] std::uint32_t length() const { return length_; }

    // Number of all positions, including those of the next epoch.
    [[nodiscard]] std::uint32_t horizon() const {
        return static_cast<std::uint32_t>(samples_.size());
    }

    [[nodiscard]] SampleIndex sample_at(std::uint32_t position) const { return samples_[position]; }

    [[nodiscard]] bool is_read(std::uint32_t position) const { return read_[position]; }

    // The lowest unread position of the epoch; length() when everything was read.
    [[nodiscard]] std::uint32_t frontier() const { return frontier_; }

    // The first unread position of `sample`; at or above length() if only the next epoch needs it.
    // O(1) if the plan has every sample of the dataset once, else O(log n).
    [[nodiscard]] std::optional<std::uint32_t> next_position(SampleIndex sample) const;

    // Marks the first unread occurrence in the epoch as read. False if there is none: the sample
    // was read before, or is not in the plan.
    bool read(SampleIndex sample);

    // Replaces the positions from `tail.from` on (at most horizon()) and returns the samples of those
    // that were unread. The plan must have no samples of the next epoch, and all samples belong to
    // the dataset. O(unread positions + samples * log(samples)).
    std::vector<SampleIndex> extend(const PlanTail& tail);

    // Number of the first samples of `next` that this plan already contained as the next epoch's.
    [[nodiscard]] std::uint32_t foresaw(const StreamPlan& next) const;

private:
    StreamPlan() = default;

    bool index_each_once();
    void index();
    void index_from(std::uint32_t position);

    std::uint64_t epoch_ = 0;
    bool each_once_ = false;  // has every sample once: by_sample_ is indexed by sample
    std::vector<SampleIndex> samples_;
    std::vector<std::uint32_t> by_sample_;  // positions, sorted by (sample, position); some read
    std::vector<bool> read_;
    std::uint32_t length_ = 0;
    std::uint32_t frontier_ = 0;
};

}  // namespace stoker::sidecar

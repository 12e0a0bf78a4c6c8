#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace stoker::sidecar {

// Bounds the losses that are accepted from one peer: per job and epoch of our own ranks,
// kPerSample for each sample of the dataset. A correct node reports at most one loss for
// each sample and epoch, and its ranks may be one epoch behind or ahead of ours. Our own
// ranks may go back to an earlier epoch. Remembers at most kJobsMax jobs. Not
// thread-safe.
class LossIntake {
public:
    static constexpr std::uint64_t kPerSample = 3;
    static constexpr std::size_t kJobsMax = 128;

    // Counts `losses` for the job; false: too many. `own_epoch`: the epoch of our own ranks.
    [[nodiscard]] bool admit(
        const std::string& job,
        std::uint64_t own_epoch,
        std::size_t losses,
        std::uint64_t sample_count) {
        if (taken_.size() >= kJobsMax && !taken_.contains(job)) {
            taken_.clear();
        }
        Taken& taken = taken_[job];
        if (own_epoch != taken.epoch) {
            taken = {own_epoch, 0};
        }
        if (taken.losses + losses > kPerSample * sample_count) {
            return false;
        }
        taken.losses += losses;
        return true;
    }

private:
    struct Taken {
        std::uint64_t epoch = 0;
        std::uint64_t losses = 0;
    };

    std::map<std::string, Taken> taken_;
};

}  // namespace stoker::sidecar

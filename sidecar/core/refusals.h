#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

// Samples that the origin refuses: it did not return them as listed, because they are missing,
// changed or have another checksum. Until a refusal ends, demands of the sample get the origin's
// message, and the origin is not asked. The first refusal of a sample lasts kFirst, each further
// one in a row twice as long, at most kLongest. Refusals end because objects come back: stores are
// eventually consistent, a CDN may serve an old copy, an owner may restore an object.
//
// Has no timers. Keeps at most kSamplesMax samples; one more ends the refusal that would end first.
// Not thread-safe.
class Refusals {
public:
    static constexpr Duration kFirst = std::chrono::seconds{30};
    static constexpr Duration kLongest = std::chrono::minutes{10};
    static constexpr std::size_t kSamplesMax = 4096;

    // Whether the error means that the object is gone, or differs from the listed one.
    [[nodiscard]] static bool is_refusal(ErrorCode code) {
        return !is_retryable(code) && code != ErrorCode::kResourceExhausted &&
               code != ErrorCode::kForbidden &&  // credentials are repaired while jobs run
               code != ErrorCode::kCancelled && code != ErrorCode::kInternal;
    }

    // The length of the `times`-th refusal in a row, counted from 1.
    [[nodiscard]] static Duration length(std::uint32_t times) {
        return std::min(kFirst * (1U << std::min(times - 1, 8U)), kLongest);
    }

    // Adds a refusal; returns a sample whose refusal it ends, if any. Precondition: not refused.
    std::optional<domain::SampleIndex> add(
        domain::SampleIndex sample, std::uint32_t times, std::string message, TimePoint now) {
        std::optional<domain::SampleIndex> ended;
        if (refusals_.size() == kSamplesMax) {
            const auto first = std::ranges::min_element(
                refusals_, {}, [](const auto& entry) { return entry.second.end; });
            ended = first->first;
            refusals_.erase(first);
        }
        refusals_[sample] = {std::move(message), now + length(times)};
        return ended;
    }

    // Forgets the sample's refusal if its time is over. False: it is not over.
    bool take_ended(domain::SampleIndex sample, TimePoint now) {
        const auto found = refusals_.find(sample);
        if (now < found->second.end) {
            return false;
        }
        refusals_.erase(found);
        return true;
    }

    // The origin's message. Precondition, as for take_ended(): the sample is refused.
    [[nodiscard]] const std::string& message(domain::SampleIndex sample) const {
        return refusals_.at(sample).message;
    }

private:
    struct Refusal {
        std::string message;
        TimePoint end{};
    };

    std::map<domain::SampleIndex, Refusal> refusals_;
};

}  // namespace stoker::sidecar

#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/token_bucket.h"
#include "sidecar/core/engine_limits.h"
#include "sidecar/core/sample_table.h"

namespace stoker::sidecar {

// Progress of an order to fetch own samples without a reader.
struct FillState {
    SampleSum own;
    SampleSum stored;           // of the own samples: those that are resident
    std::uint64_t refused = 0;  // of the own samples: refused by the origin, or too large to cache
    bool over = false;          // all were looked at; those not stored are refused or have no room
    bool shut = false;          // nothing may be fetched or stored now

    bool operator==(const FillState&) const = default;
};

// The state of a grant's order to fetch this node's own samples without a reader: a position in the
// dataset, a rate limit, and the samples that cannot be fetched. Looks at samples in the manifest's
// order, and again at all after each grant of the operator, because samples may have left the node,
// and when owners change or the grant grows. Pure: no timers inside. Not thread-safe.
class FillScan {
public:
    // Call for each grant. An order equal to the last one leaves the rate limit as it is. The
    // disk's limit changes a grant's bytes every second; the scan restarts only if they are more
    // than when it last started.
    void order(const EngineGrant& grant, TimePoint now) {
        const bool is_new = grant.fill_bytes_per_second != ordered_;
        if (is_new && grant.fill_bytes_per_second) {
            const auto rate = static_cast<double>(*grant.fill_bytes_per_second);
            bucket_.set(rate, rate / kBurstsPerSecond, now);
            bucket_.cut_debt(rate);
        }
        ordered_ = grant.fill_bytes_per_second;
        if (is_new || grant.valid_until != valid_until_ || grant.resident_bytes > room_) {
            valid_until_ = grant.valid_until;
            room_ = grant.resident_bytes;
            restart();
        }
    }

    // Looks at all samples again.
    void restart() {
        next_ = refused_ = 0;
        lacks_room_ = false;
    }

    [[nodiscard]] bool is_ordered() const { return ordered_.has_value(); }

    // Whether samples remain to be looked at, of `count` in the dataset.
    [[nodiscard]] bool is_open(std::uint64_t count) const { return is_ordered() && next_ < count; }

    [[nodiscard]] SampleIndex next() const { return static_cast<SampleIndex>(next_); }

    void pass() { ++next_; }

    // Passes a sample that the origin refuses, or that is too large to cache.
    void pass_refused() {
        ++next_;
        ++refused_;
    }

    // Passes a sample that has no room.
    void pass_full() {
        ++next_;
        lacks_room_ = true;
    }

    // Call when a passed sample that was being fetched turns out to be refused or too large.
    void note_refused(SampleIndex sample) { refused_ += sample < next_ ? 1 : 0; }

    // Call when a fetch has failed: the sample is looked at again.
    void rewind(SampleIndex sample) {
        if (sample < next_) {
            restart();
        }
    }

    // Number of refused samples before next().
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    // Whether a sample before next() has no room.
    [[nodiscard]] bool lacks_room() const { return lacks_room_; }

    // Whether a fetch that was noted with begin() is still running.
    [[nodiscard]] bool is_fetching() const { return !in_flight_.empty(); }

    [[nodiscard]] bool allows(TimePoint now) const {
        return bucket_.is_unlimited() || bucket_.tokens(now) > 0;
    }

    // Notes that a fetch of the sample has begun without a reader.
    void begin(SampleIndex sample) { in_flight_.insert(sample); }

    // Whether begin() was called for a running fetch, under the order that is still in force.
    [[nodiscard]] bool has(SampleIndex sample) const {
        return is_ordered() && in_flight_.contains(sample);
    }

    // Charges the bytes that such a fetch requests to the rate limit.
    void take(Bytes bytes, TimePoint now) { bucket_.take(static_cast<double>(bytes.count()), now); }

    // Call when a fetch of the sample has ended, whoever began it.
    void end(SampleIndex sample) { in_flight_.erase(sample); }

    // When allows() becomes true by time alone. nullopt: it is true now, or nothing is left to fetch.
    [[nodiscard]] std::optional<TimePoint> allows_at(std::uint64_t count, TimePoint now) const {
        return (is_open(count) || is_fetching()) && !allows(now)
                   ? std::optional{now + bucket_.wait_for(1, now)}
                   : std::nullopt;
    }

private:
    // A burst is a tenth of a second's worth, so that the limit holds over short times, too.
    static constexpr double kBurstsPerSecond = 10;

    std::optional<std::uint64_t> ordered_;
    std::optional<TimePoint> valid_until_;  // expiry of the grant with which order() last restarted
    Bytes room_{};                          // of that grant
    std::uint64_t next_ = 0;
    std::uint64_t refused_ = 0;
    bool lacks_room_ = false;
    std::unordered_set<SampleIndex> in_flight_;
    TokenBucket bucket_{0, 0};  // in bytes
};

}  // namespace stoker::sidecar

#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/support/dataset.h"
#include "tests/world/schedule.h"

namespace stoker::world {

// memcmp(): std::byte is no integer for std::equal(), which compares byte by byte.
inline bool has_equal_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
    return one.size() == other.size() &&
           (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

// An epoch that a trainer has ended.
struct EpochRead {
    std::string trainer;
    std::string contract;
    std::uint64_t epoch = 0;
    bool is_full = false;  // importance: it reads the whole share
};

// Sees the whole world, and records the first broken promise. Not thread-safe.
class Oracle {
public:
    Oracle(Schedule& schedule, const test::Dataset& dataset);

    // The origin's bytes.
    [[nodiscard]] const std::vector<std::byte>& payload(std::uint64_t sample) const {
        return payloads_.at(sample);
    }

    [[nodiscard]] std::uint64_t sample_count() const { return payloads_.size(); }

    [[nodiscard]] const test::Dataset& dataset() const { return dataset_; }

    // A trainer got these bytes; `source` is for people.
    void on_served(
        const std::string& trainer,
        std::uint64_t sample,
        std::span<const std::byte> bytes,
        const char* source);

    // A trainer has ended an epoch. `counts`: how often it got each sample; `share`: the samples of
    // its rank under a contract that reads all.
    void on_epoch(
        const EpochRead& epoch,
        const std::map<std::uint64_t, std::uint32_t>& counts,
        const std::vector<std::uint64_t>& share);

    // A leader fetches a sample from the origin, until end_fetch(). `is_on_node`: its bytes are
    // readable in the node directory already.
    void begin_fetch(const std::string& sidecar, const std::string& key, bool is_on_node);

    void end_fetch(const std::string& key) { in_flight_.erase(key); }

    // Notes a broken promise.
    void accuse(const std::string& what);

    // Empty: no promise was broken.
    [[nodiscard]] const std::string& accusation() const { return accusation_; }

    // How often a thing happened, for the table of a run.
    std::map<std::string, std::uint64_t> counts;

private:
    void check_draws(
        const EpochRead& epoch, std::uint64_t drawn, std::uint32_t most, std::size_t share);

    Schedule& schedule_;
    const test::Dataset& dataset_;
    std::vector<std::vector<std::byte>> payloads_;
    std::map<std::string, std::string> in_flight_;  // key → sidecar
    std::string accusation_;
};

}  // namespace stoker::world

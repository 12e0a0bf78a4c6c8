#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"
#include "sidecar/core/sample_sizes.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Which node of a group owns each sample of a dataset. By default the node with the highest hash of
// (node name, sample key), called rendezvous hashing: all nodes that know the same names agree, a
// node that joins or leaves moves only its own share, and since keys, not indexes, are hashed, a new
// revision moves nothing. Or a table, which all nodes have alike (owners_by_reads): then
// the hash only orders the other nodes.
//
// Costs: the constructor hashes every key for every node, so run it on a pool: at 10^7 samples 0.5 s
// of a core for 2 nodes, 2.3 s for 64. One bit a sample stays in memory, and 2 bytes with a
// table. is_own() is a look-up, owner() one hash of the key and one multiplication chain per node, or
// a look-up in the table. Immutable, so any thread may
// read it.
class Placement {
public:
    // The sample's key; must stay callable, by any thread, while this lives.
    using KeyOf = std::function<std::string_view(SampleIndex)>;

    // `nodes`: distinct names, `self` is the position of the own one. `owners`: positions by sample;
    // empty: by the hash.
    Placement(
        const SampleSizes& sizes,
        KeyOf key_of,
        std::span<const std::string> nodes,
        std::size_t self,
        std::vector<std::uint16_t> owners = {});

    // Position of the owner in `nodes`.
    [[nodiscard]] std::size_t owner(SampleIndex sample) const;

    // Position of the node that would own the sample by the hash if only the other nodes for which
    // `counts` is true were there. For an own sample that is its owner of the time before this node
    // joined, or before the table was there. nullopt: no such node.
    [[nodiscard]] std::optional<std::size_t> runner_up(
        SampleIndex sample, const std::function<bool(std::size_t)>& counts) const;

    [[nodiscard]] bool is_own(SampleIndex sample) const { return own_[sample]; }

    [[nodiscard]] bool has_table() const { return !owners_.empty(); }

    [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }

    // Record bytes of all own samples.
    [[nodiscard]] Bytes own_bytes() const { return own_bytes_; }

    [[nodiscard]] std::uint64_t own_samples() const { return own_samples_; }

    // Payload bytes of all own samples.
    [[nodiscard]] Bytes own_payload() const { return own_payload_; }

private:
    KeyOf key_of_;
    std::size_t self_;
    std::vector<std::uint64_t> nodes_;   // hashes of the names
    std::vector<std::uint16_t> owners_;  // by sample; empty: by the hash
    std::vector<bool> own_;              // by sample
    Bytes own_bytes_{};
    std::uint64_t own_samples_ = 0;
    Bytes own_payload_{};
};

// A hash of the text that is the same on every machine; not for secrets.
[[nodiscard]] std::uint64_t placement_hash(std::string_view text);

}  // namespace stoker::sidecar

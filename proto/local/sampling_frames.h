#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Frames for reading under a sampling contract: the sidecar chooses the next samples and sends them
// in answers to kDraw; the trainer reports its losses. docs/design/local-protocol.md, "Sampling
// contracts".
namespace stoker::local {

inline constexpr std::uint32_t kDrawSamplesMax = 65536;
inline constexpr std::uint32_t kParametersMax = 64;

// A named number of a contract, such as "beta" 0.33.
struct Parameter {
    std::string name;
    double value = 0;

    bool operator==(const Parameter&) const = default;
};

// Begins an epoch of one rank. Ends the connection's previous epoch.
struct Begin {
    std::uint64_t epoch = 0;
    std::uint64_t skip = 0;  // draws of this epoch that the trainer has received already
    std::uint64_t seed = 0;
    std::uint32_t rank = 0;  // rank in the whole job
    std::uint32_t world_size = 1;
    std::uint32_t batch = 1;  // samples per draw request; the same for all ranks of the job
    std::string contract;     // "windowed", "importance", "replicate"
    std::string job;          // ranks with the same text share one sampler
    std::vector<Parameter> parameters;

    // If either number is not 0, the frame comes with a sealed memfd that holds both, one after the
    // other. `served`: samples that the trainer has received in this epoch: bit i of byte b is
    // sample 8b + i; missing bits are 0. A new leader continues from it. `snapshot`: the state of
    // an earlier kSnapshot; restored if the leader does not know the job.
    std::uint64_t served_bytes = 0;
    std::uint64_t snapshot_bytes = 0;

    bool operator==(const Begin&) const = default;
};

struct Begun {
    std::uint64_t epoch = 0;
    std::uint64_t losses = 0;  // losses that the job's sampler has processed so far

    bool operator==(const Begun&) const = default;
};

struct Draw {
    std::uint64_t epoch = 0;
    std::uint32_t count = 0;  // at most kDrawSamplesMax

    bool operator==(const Draw&) const = default;
};

// How a sample was chosen: an entry of Drawn::kinds without its flag kKindOnNode.
enum class DrawKind : std::uint8_t {
    kPlain = 0,
    kImportant = 1,
    kUnimportant = 2,
    kSubstituted = 3,  // the served sample is not the requested one
    kRepeated = 4,
};

// Flag in an entry of Drawn::kinds. Set: the sample's bytes were on the node, or being fetched for
// another reader. Not set: the sample is fetched for this draw.
inline constexpr std::uint8_t kKindOnNode = 0x80;

// The drawn samples. All three arrays have one entry per draw.
struct Drawn {
    std::uint64_t epoch = 0;
    bool ended = false;  // the epoch has no more samples
    std::vector<std::uint64_t> requested;
    std::vector<std::uint64_t> served;
    std::vector<std::uint8_t> kinds;

    bool operator==(const Drawn&) const = default;
};

// Losses of a training step; one-way. `losses[i]` is the loss of `samples[i]`, a served id.
// `p_others`: for each sample the largest probability among the other classes, 0..1 (any other
// number: not known), or empty. Only a sidecar with kFeaturePOthers accepts p_others.
struct Losses {
    std::uint64_t epoch = 0;
    std::vector<std::uint64_t> samples;
    std::vector<float> losses;
    std::vector<float> p_others = {};

    bool operator==(const Losses&) const = default;
};

// One-way. 64 bits per sample, in the same order: two samples are the more alike the fewer bits
// differ. For samplers that group near-duplicates (contract importance, family Iowa).
struct Similarity {
    std::vector<std::uint64_t> samples;
    std::vector<std::uint64_t> hashes;

    bool operator==(const Similarity&) const = default;
};

// Asks for the sampler's totals of an epoch.
struct AskEpoch {
    std::uint64_t epoch = 0;

    bool operator==(const AskEpoch&) const = default;
};

struct EpochTally {
    std::uint64_t epoch = 0;
    std::uint64_t requested = 0;
    std::uint64_t distinct = 0;
    std::uint64_t repeated = 0;
    std::uint64_t substituted = 0;
    std::uint64_t skipped = 0;
    std::uint64_t losses_used = 0;
    std::uint64_t losses_ignored = 0;

    bool operator==(const EpochTally&) const = default;
};

// Asks for the state from which the job's sampler can continue on another leader.
struct AskSnapshot {
    bool operator==(const AskSnapshot&) const = default;
};

struct Snapshot {
    std::vector<std::byte> state;  // opaque; for Begin::snapshot

    bool operator==(const Snapshot&) const = default;
};

}  // namespace stoker::local

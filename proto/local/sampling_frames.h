#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The frames by which a job reads under a sampling contract: the sidecar decides what comes next
// and says so in answers to kDraw; the trainer tells its losses. docs/design/local-protocol.md,
// "Sampling contracts".
namespace stoker::local {

inline constexpr std::uint32_t kDrawSamplesMax = 65536;
inline constexpr std::uint32_t kParametersMax = 64;

// A named number of a contract, such as "beta" 0.33.
struct Parameter {
    std::string name;
    double value = 0;

    bool operator==(const Parameter&) const = default;
};

// Begins an epoch of one rank. The epoch that was being drawn on the connection ends with it.
struct Begin {
    std::uint64_t epoch = 0;
    std::uint64_t skip = 0;  // how many draws of this epoch the trainer has had already
    std::uint64_t seed = 0;
    std::uint32_t rank = 0;  // of the whole job
    std::uint32_t world_size = 1;
    std::uint32_t batch = 1;  // samples that this rank draws together
    std::string contract;     // "windowed", "importance", "replicate"
    std::string job;          // ranks that say the same share one sampler
    std::vector<Parameter> parameters;

    // When one of these is not 0, a sealed memfd comes with the frame and holds both, one after the
    // other. `served`: which samples the trainer has had in this epoch, bit i of byte b is sample
    // 8b + i, samples past its end: no; it lets a leader go on where another one stopped.
    // `snapshot`: what an earlier kSnapshot gave; restored when the leader knows nothing of the
    // job.
    std::uint64_t served_bytes = 0;
    std::uint64_t snapshot_bytes = 0;

    bool operator==(const Begin&) const = default;
};

struct Begun {
    std::uint64_t epoch = 0;
    std::uint64_t losses = 0;  // that the job's sampler has learnt from so far

    bool operator==(const Begun&) const = default;
};

struct Draw {
    std::uint64_t epoch = 0;
    std::uint32_t count = 0;  // at most kDrawSamplesMax

    bool operator==(const Draw&) const = default;
};

// Low bits of the kinds in kDrawn.
enum class DrawKind : std::uint8_t {
    kPlain = 0,
    kImportant = 1,
    kUnimportant = 2,
    kSubstituted = 3,  // served is not what was requested
    kRepeated = 4,
};

// Set in a kind: the sample's bytes were on the node, or on their way to it for somebody else.
// Without it, this draw is what they are fetched for.
inline constexpr std::uint8_t kKindOnNode = 0x80;

// All three arrays have one entry a draw.
struct Drawn {
    std::uint64_t epoch = 0;
    bool ended = false;  // nothing more comes in this epoch
    std::vector<std::uint64_t> requested;
    std::vector<std::uint64_t> served;
    std::vector<std::uint8_t> kinds;

    bool operator==(const Drawn&) const = default;
};

// One-way. `losses` belong to `samples`, the served ids, position by position.
struct Losses {
    std::uint64_t epoch = 0;
    std::vector<std::uint64_t> samples;
    std::vector<float> losses;

    bool operator==(const Losses&) const = default;
};

// One-way. 64 bits for each sample, position by position: the fewer differ between two samples, the
// more alike these are. For families that group near-duplicates.
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

// Asks for the state with which the job's sampler can go on elsewhere.
struct AskSnapshot {
    bool operator==(const AskSnapshot&) const = default;
};

struct Snapshot {
    std::vector<std::byte> state;  // opaque; for Begin::snapshot

    bool operator==(const Snapshot&) const = default;
};

}  // namespace stoker::local

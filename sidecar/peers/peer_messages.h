#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/ids.h"

// The heads of the frames between two peers (docs/design/peers.md has the order of messages). All
// integers are little-endian. Pure: no I/O here.
namespace stoker::sidecar {

inline constexpr std::uint16_t kPeerProtocolVersion = 1;

// The first frame in each direction.
struct PeerHello {
    static constexpr std::size_t kTextMax = 255;

    std::string dataset_uid;
    // Sample indexes are meaningful only in this revision. 0: the sender has no revision and asks
    // for the manifest.
    domain::RevisionId revision{};
    std::string node;              // name of the sender's node
    std::uint64_t generation = 0;  // generation of the sender's lead

    bool operator==(const PeerHello&) const = default;
};

// Asks the receiver for samples. It answers each by a PeerAnswer or PeerRefusal, in any order.
struct PeerAsk {
    static constexpr std::size_t kSamplesMax = 8192;

    std::uint64_t request_id = 0;              // below 2^63
    std::vector<domain::SampleIndex> samples;  // 1 to kSamplesMax
    // The receiver must not fetch: it refuses samples that are not on its node. Earlier versions
    // ignore the flag and treat these samples like all others.
    bool only_if_there = false;

    bool operator==(const PeerAsk&) const = default;
};

// Answers with one sample, which is the frame's payload.
struct PeerAnswer {
    std::uint64_t request_id = 0;
    domain::SampleIndex sample = 0;
    std::uint32_t crc32c = 0;

    bool operator==(const PeerAnswer&) const = default;
};

enum class PeerRefusalReason : std::uint8_t {
    kNotMine = 1,        // another node owns the sample, according to the receiver's group
    kOtherRevision = 2,  // the receiver serves another revision; the connection ends
    kFailed = 3,         // the origin or the disk failed, or there is no room
    kGoingAway = 4,      // the receiver does not lead, or stops leading; the connection ends
    kNotMember = 5,      // not in the receiver's group, or an older lead; the connection ends
};

// Refuses one sample; with request id 0 it refuses the connection.
struct PeerRefusal {
    std::uint64_t request_id = 0;
    domain::SampleIndex sample = 0;
    PeerRefusalReason reason = PeerRefusalReason::kFailed;

    bool operator==(const PeerRefusal&) const = default;
};

// Asks for a part of the receiver's manifest; only on a channel whose Hello has revision 0.
// Answered by a PeerManifestPiece or a PeerManifestWait, in the order of the asks.
struct PeerManifestAsk {
    static constexpr std::uint32_t kBytesMax = std::uint32_t{1} << 20U;

    std::uint64_t source = 0;       // hash of Origin::describe(): another source is another dataset
    domain::RevisionId revision{};  // 0: whichever revision the receiver has
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;  // at most kBytesMax; 0: only tell what there is
    // Tell the listing's attempt and age, too. Earlier versions take it for an invalid number of bytes
    // and end the connection.
    bool wants_age = false;

    bool operator==(const PeerManifestAsk&) const = default;
};

// The attempt that a manifest was listed for, and the listing's age.
struct PeerListing {
    std::string attempt_uid;        // the batch/v1 Job's; empty: not known
    std::optional<Duration> age{};  // in seconds; nullopt: not known

    bool operator==(const PeerListing&) const = default;
};

// The frame's payload is the manifest file from `offset` on: as many bytes as were asked for, or up to
// its end.
struct PeerManifestPiece {
    domain::RevisionId revision{};
    std::uint64_t offset = 0;
    std::uint64_t total_bytes = 0;  // of the file
    std::string job_uid;            // of the job whose key has listed or read it; empty: not known
    std::optional<PeerListing> listing{};  // only if the ask wants_age

    bool operator==(const PeerManifestPiece&) const = default;
};

// Answers that the sender has no such manifest now.
struct PeerManifestWait {
    enum class State : std::uint8_t {
        kIdle = 1,     // the sender has not decided yet whether it lists
        kListing = 2,  // the sender lists the origin
        kTaking = 3,   // the sender waits for another node's manifest, or receives it
        kNever = 4,    // its listing failed, or it has another source or revision
    };

    State state = State::kIdle;
    std::uint64_t progress = 0;  // grows while the sender makes progress

    bool operator==(const PeerManifestWait&) const = default;
};

// Losses that ranks on the sender's node reported for one job, report by report. Not answered; may
// be lost.
struct PeerLosses {
    static constexpr std::size_t kEntriesMax = 4096;  // losses of all reports together

    struct Report {
        std::vector<domain::SampleIndex> samples;  // 1 or more
        std::vector<std::uint8_t> codes;           // one code per sample; LossCode defines them

        bool operator==(const Report&) const = default;
    };

    std::string job;  // as named by the sender's leader: "<uid of the TrainingJob>/<own name>"
    std::uint64_t epoch = 0;
    std::vector<Report> reports;  // 1 or more

    bool operator==(const PeerLosses&) const = default;
};

using PeerMessage = std::variant<
    PeerHello,
    PeerAsk,
    PeerAnswer,
    PeerRefusal,
    PeerLosses,
    PeerManifestAsk,
    PeerManifestPiece,
    PeerManifestWait>;

// Encodes a head of at most PeerFrame::kHeadMax bytes; texts at most PeerHello::kTextMax.
[[nodiscard]] std::vector<std::byte> encode_peer_head(const PeerMessage& message);

// Decodes a head. kInvalidArgument: not a head of this version, or out of bounds. Allocates memory
// only for entries that `head` really has.
[[nodiscard]] Result<PeerMessage> decode_peer_head(std::span<const std::byte> head);

}  // namespace stoker::sidecar

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

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
    // Sample indexes have a meaning in this revision only. 0: the sender has none and asks for the
    // manifest.
    domain::RevisionId revision{};
    std::string node;              // of the sender
    std::uint64_t generation = 0;  // of the sender's lead

    bool operator==(const PeerHello&) const = default;
};

// Asks for samples of the receiver. Each is answered by a PeerAnswer or a PeerRefusal, in any order.
struct PeerAsk {
    static constexpr std::size_t kSamplesMax = 8192;

    std::uint64_t request_id = 0;              // below 2^63
    std::vector<domain::SampleIndex> samples;  // 1 to kSamplesMax
    // Fetch nothing: refuse what is not on the node. Earlier versions ignore it and treat the
    // samples like all others.
    bool only_if_there = false;

    bool operator==(const PeerAsk&) const = default;
};

// The frame's payload is the sample.
struct PeerAnswer {
    std::uint64_t request_id = 0;
    domain::SampleIndex sample = 0;
    std::uint32_t crc32c = 0;

    bool operator==(const PeerAnswer&) const = default;
};

enum class PeerRefusalReason : std::uint8_t {
    kNotMine = 1,        // another node owns the sample, by the receiver's group
    kOtherRevision = 2,  // the receiver serves another revision; the connection ends
    kFailed = 3,         // the origin or the disk failed, or there is no room
    kGoingAway = 4,      // no lead, or it ends; the connection ends
    kNotMember = 5,      // not in the receiver's group, or an older lead; the connection ends
};

// Refuses one sample; with request id 0, the connection.
struct PeerRefusal {
    std::uint64_t request_id = 0;
    domain::SampleIndex sample = 0;
    PeerRefusalReason reason = PeerRefusalReason::kFailed;

    bool operator==(const PeerRefusal&) const = default;
};

// Asks for a part of the receiver's manifest. Only over a channel whose Hello has revision 0. Answered
// by a PeerManifestPiece or a PeerManifestWait, in the order of the asks.
struct PeerManifestAsk {
    static constexpr std::uint32_t kBytesMax = std::uint32_t{1} << 20U;

    std::uint64_t source = 0;       // hash of Origin::describe(); another source: another dataset
    domain::RevisionId revision{};  // 0: the revision that the receiver has
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;  // at most kBytesMax; 0: only tell what there is

    bool operator==(const PeerManifestAsk&) const = default;
};

// The frame's payload is the manifest file from `offset` on: as many bytes as were asked for, or up to
// its end.
struct PeerManifestPiece {
    domain::RevisionId revision{};
    std::uint64_t offset = 0;
    std::uint64_t total_bytes = 0;  // of the file
    std::string job_uid;            // of the job whose key has listed or read it; empty: not known

    bool operator==(const PeerManifestPiece&) const = default;
};

// The sender has no such manifest now.
struct PeerManifestWait {
    enum class State : std::uint8_t {
        kIdle = 1,     // it has not decided yet whether it lists
        kListing = 2,  // it lists the origin
        kTaking = 3,   // it waits for another node's manifest, or receives it
        kNever = 4,    // its listing failed, or it has another source or revision
    };

    State state = State::kIdle;
    std::uint64_t progress = 0;  // grows while the sender makes progress

    bool operator==(const PeerManifestWait&) const = default;
};

// Losses that ranks on the sender's node reported for one job, report by report. Not answered; may
// be lost.
struct PeerLosses {
    static constexpr std::size_t kEntriesMax = 4096;  // of all reports together

    struct Report {
        std::vector<domain::SampleIndex> samples;  // 1 or more
        std::vector<std::uint8_t> codes;           // as many; LossCode has their meaning

        bool operator==(const Report&) const = default;
    };

    std::string job;  // as the sender's leader names it: "<uid of the TrainingJob>/<own name>"
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

// At most PeerFrame::kHeadMax bytes. Texts must have at most PeerHello::kTextMax bytes.
[[nodiscard]] std::vector<std::byte> encode_peer_head(const PeerMessage& message);

// kInvalidArgument: not a head of this version, or out of bounds; takes memory only for what `head`
// really has.
[[nodiscard]] Result<PeerMessage> decode_peer_head(std::span<const std::byte> head);

}  // namespace stoker::sidecar

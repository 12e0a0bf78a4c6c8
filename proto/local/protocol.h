#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "proto/local/peer_frames.h"
#include "proto/local/probe_frames.h"
#include "proto/local/sampling_frames.h"

// The local protocol: trainer process <-> its sidecar, and follower sidecar <-> leader, over a Unix
// stream socket. docs/design/local-protocol.md has the message order; golden vectors in
// tests/contract check both sides.
//
// Every frame is [payload_bytes u32][type u16][flags u16 = 0][request_id u64][payload]; all
// integers little-endian, texts are [bytes u16][utf-8]. A response carries its request's
// request_id; one-way frames carry 0. Pure: no I/O here.
namespace stoker::local {

inline constexpr std::uint32_t kProtocolMagic = 0x524B5453U;  // "STKR"
inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 16;
inline constexpr std::uint32_t kFramePayloadBytesMax = 16U << 20U;

enum class FrameType : std::uint16_t {
    kHello = 1,     // client -> sidecar, first frame of a connection
    kWelcome = 2,   // response to kHello once the manifest exists
    kListing = 3,   // before kWelcome, at most one a second: the listing is in progress
    kError = 4,     // response to any frame; after an error to kHello the connection ends
    kFetch = 5,     // client -> sidecar: make these samples readable
    kFetched = 6,   // answer to kFetch
    kPlan = 7,      // client -> sidecar, with one sealed memfd of u64 sample ids by SCM_RIGHTS
    kPlanned = 8,   // answer to kPlan
    kConsumed = 9,  // client -> sidecar: these samples were read and may leave the window. One-way,
                    // unless a follower sets a request id: then the leader answers kCounted
    kReport = 10,   // client -> sidecar, one-way: training statistics of the job
    kBegin = 11,    // client -> sidecar: begins an epoch under a sampling contract
    kBegun = 12,    // answer to kBegin
    kDraw = 13,     // client -> sidecar: asks for the next samples
    kDrawn = 14,    // answer to kDraw
    kLosses = 15,   // client -> sidecar, one-way: per-sample losses of a training step
    kAskEpoch = 16,     // client -> sidecar
    kEpochTally = 17,   // answer to kAskEpoch
    kAskSnapshot = 18,  // client -> sidecar
    kSnapshot = 19,     // answer to kAskSnapshot
    kAskProbe = 20,     // client -> sidecar
    kProbe = 21,        // answer to kAskProbe
    kProbed = 22,       // client -> sidecar, one-way: what was measured
    kCounted = 23,      // answer to a kConsumed with a request id
    kSimilarity = 24,   // client -> sidecar, one-way: fingerprints of samples
    kPeer = 25,         // sidecar -> leader, first frame over leader.sock
    kPing = 26,         // sidecar -> leader
    kPong = 27,         // answer to kPing
};

// True if a trainer may send a frame of this type to its sidecar after the hello.
bool is_client_frame(FrameType type);

struct FrameHeader {
    std::uint32_t payload_bytes = 0;
    FrameType type = FrameType::kError;
    std::uint64_t request_id = 0;

    bool operator==(const FrameHeader&) const = default;
};

// `stream` identifies one sample stream (one rank of one job): the sampler's process and all its
// DataLoader workers send the same number. 0: this connection reads without a plan.
struct Hello {
    std::uint16_t version = kProtocolVersion;
    bool relay = false;  // a follower sidecar forwards a client's connection
    std::uint32_t pid = 0;
    std::uint32_t rank = 0;
    std::uint32_t world_size = 1;
    std::uint64_t stream = 0;
    std::string dataset;  // the name under spec.datasets, e.g. "train"
    std::string client;   // "stoker-python/0.1.0", for logs

    bool operator==(const Hello&) const = default;
};

// Optional features of a sidecar; bits of Welcome::features.
inline constexpr std::uint32_t kFeatureContracts = 1;  // kBegin to kSnapshot
inline constexpr std::uint32_t kFeatureProbe = 2;      // kAskProbe to kProbed
inline constexpr std::uint32_t kFeatureCounts = 4;     // kCounted
inline constexpr std::uint32_t kFeatureAhead = 8;      // the memfd of a kPlan may exceed its epoch
inline constexpr std::uint32_t kFeaturePOthers = 16;   // kLosses may contain p_others

struct Welcome {
    std::uint16_t version = kProtocolVersion;
    std::uint64_t revision = 0;
    std::uint64_t sample_count = 0;
    std::string directory;       // path of the node directory at the client's mount
    std::uint32_t features = 0;  // bits kFeature...

    bool operator==(const Welcome&) const = default;
};

struct Listing {
    std::uint64_t objects_listed = 0;

    bool operator==(const Listing&) const = default;
};

struct ErrorReply {
    std::uint16_t code = 0;  // an ErrorCode
    std::string message;

    bool operator==(const ErrorReply&) const = default;
};

// Requests samples. Also ends the connection's previous kFetch, whose window samples may then be
// evicted.
struct Fetch {
    std::vector<std::uint64_t> samples;

    bool operator==(const Fetch&) const = default;
};

enum class FetchStatus : std::uint8_t {
    kReady = 0,         // the residency word is set
    kReadAtOrigin = 1,  // the sidecar is bypassed (no room, or slower than the origin)
    kOriginError =
        2,  // the origin does not return this sample; `message` has the reason and its key
};

struct Fetched {
    std::vector<FetchStatus> statuses;  // one per id of the request, in order
    std::string message;                // error message of the first kOriginError

    bool operator==(const Fetched&) const = default;
};

// Limit of the samples of the next epoch in a plan's memfd. It exceeds what a sidecar can fetch
// ahead (6 GB of samples of 100 kB, with a window of 256 MiB), and costs 512 KiB to transfer.
inline constexpr std::uint64_t kAheadSamplesMax = 65536;

// Replaces the stream's plan. The memfd holds `sample_count` u64 ids, sealed against shrinking and
// writing. With kFeatureAhead in the Welcome, up to kAheadSamplesMax ids of the next epoch may
// follow.
struct Plan {
    std::uint64_t epoch = 0;
    std::uint64_t sample_count = 0;
    std::uint64_t start = 0;  // first position, for a resume in mid-epoch

    bool operator==(const Plan&) const = default;
};

struct Planned {
    bool operator==(const Planned&) const = default;
};

struct Consumed {
    std::uint64_t epoch = 0;
    std::vector<std::uint64_t> samples;

    bool operator==(const Consumed&) const = default;
};

// Reports changes since the last report of this connection.
struct Report {
    std::uint64_t epoch = 0;
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t hit_samples = 0;     // mapped from the node directory
    std::uint64_t origin_samples = 0;  // read by the client itself, bypassing the sidecar
    std::uint64_t wait_ns = 0;         // time spent waiting for data
    std::uint64_t compute_ns = 0;      // time from the delivery of a batch to the next request

    bool operator==(const Report&) const = default;
};

// Counts the sources of the samples of one kConsumed, of those that are still on the node when it
// arrives. The first read of a fetched sample, ahead or on demand, counts as fetched, whichever
// client requested it. Further reads are hits: they did not use the link to the origin.
struct Counted {
    std::uint64_t hit_samples = 0;
    std::uint64_t hit_bytes = 0;
    std::uint64_t fetched_samples = 0;
    std::uint64_t fetched_bytes = 0;

    bool operator==(const Counted&) const = default;
};

// All message types, in the order of FrameType.
using Message = std::variant<
    Hello,
    Welcome,
    Listing,
    ErrorReply,
    Fetch,
    Fetched,
    Plan,
    Planned,
    Consumed,
    Report,
    Begin,
    Begun,
    Draw,
    Drawn,
    Losses,
    AskEpoch,
    EpochTally,
    AskSnapshot,
    Snapshot,
    AskProbe,
    Probe,
    Probed,
    Counted,
    Similarity,
    Peer,
    Ping,
    Pong>;

// Encodes a whole frame, header included.
std::vector<std::byte> encode_frame(const Message& message, std::uint64_t request_id);

// Decodes a frame's header. kInvalidArgument: too long, unknown type, nonzero flags. Close the
// connection then, because the stream is out of sync.
Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes);

// Decodes a payload of exactly header.payload_bytes. kInvalidArgument: cut short, too long, a wrong
// magic or text. A Hello of another protocol version is decoded (with that version), so that the
// refusal can name it.
Result<Message> decode_payload(FrameType type, std::span<const std::byte> payload);

}  // namespace stoker::local

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"
#include "common/domain/manifest_marks.h"

// The operator's orders to sidecars: proto/control/v1/control.proto as plain values for both
// programs.
namespace stoker::control {

// The value of the cache to one job, relative to the other jobs that read a dataset on a node.
struct JobWeight {
    std::string job_uid;
    double weight = 0;  // finite, 0 or more, in any unit

    bool operator==(const JobWeight&) const = default;
};

// Fetch the samples that the node owns, even if nobody reads them, as far as the grant has room.
struct FillOrder {
    std::uint64_t origin_bytes_per_second = 0;  // of these fetches alone; 0: no limit of their own

    bool operator==(const FillOrder&) const = default;
};

// The bytes of one dataset that one node may keep.
struct Grant {
    std::string node;  // not sent: a sidecar gets only its own node's grants
    std::string dataset_uid;
    Bytes resident_bytes{};
    std::uint32_t valid_seconds = 0;
    std::uint64_t origin_bytes_per_second = 0;  // 0: no limit
    std::string reason;
    std::vector<JobWeight> weights{};  // by job; empty: all jobs equal
    std::optional<FillOrder> fill{};   // nullopt: fetch for readers only

    bool operator==(const Grant&) const = default;
};

// Asks a sidecar's trainers to read this many batches past the cache and as many through it. A
// repeated id asks for nothing new.
struct Probe {
    std::uint64_t id = 0;  // not 0
    std::uint32_t batches = 0;

    bool operator==(const Probe&) const = default;
};

// The revision of a dataset that all ranks of an attempt read.
struct RevisionPin {
    std::string dataset_uid;
    domain::RevisionId revision{};
    domain::ManifestMarks marks{};  // of the revision; empty: not known

    bool operator==(const RevisionPin&) const = default;
};

// A sidecar that leads one of a dataset's node directories.
struct PeerMember {
    std::string node;
    std::string address;           // "host:port" of its peer network
    std::uint64_t generation = 0;  // increases with each new leader of the directory

    bool operator==(const PeerMember&) const = default;
};

// How a seeded program shuffles its epochs.
enum class ReadOrder : std::uint8_t {
    kStoker,            // stoker.order: sidecar/core/sampling/exact_order.h
    kTorchDistributed,  // torch.utils.data.DistributedSampler: torch.randperm(seed + epoch)
};

// The reads of the one job whose ranks read the dataset, known before it begins: every node computes
// how often each rank reads each sample, and owns what its own ranks read most (docs/adr/0007).
struct KnownReads {
    std::string job_uid;
    ReadOrder order = ReadOrder::kStoker;
    std::uint64_t seed = 0;
    bool drop_last = false;    // the tail that does not divide by the ranks is left out, not padded
    std::uint32_t epochs = 0;  // that the job reads, from epoch 0; at least 1
    std::vector<std::uint32_t> rank_members{};  // by rank: position of its node in the members

    bool operator==(const KnownReads&) const = default;
};

// The leaders that share a dataset's samples; the receiver is one of them, or may become one.
struct PeerGroup {
    std::string dataset_uid;
    std::uint64_t version = 0;          // increases with each change
    std::vector<PeerMember> members;    // one per node, sorted by node
    std::optional<KnownReads> reads{};  // samples are placed by them; nullopt: by a hash

    bool operator==(const PeerGroup&) const = default;
};

// The certificate for a sidecar's peer connections. PEM.
struct PeerCertificate {
    std::string chain;                // of the key that the sidecar sent
    std::string trust;                // the CAs of the peers' certificates
    std::uint32_t renew_seconds = 0;  // ask for the next one after this time

    bool operator==(const PeerCertificate&) const = default;
};

// One message to a sidecar.
struct Orders {
    std::vector<Grant> grants;
    std::optional<Probe> probe;
    std::vector<RevisionPin> pins;
    std::vector<PeerGroup> peers{};
    std::optional<PeerCertificate> peer_certificate{};
    // The operator answers PeerRequests. Only in the first message of a stream.
    bool signs_peers = false;

    bool operator==(const Orders&) const = default;
};

}  // namespace stoker::control

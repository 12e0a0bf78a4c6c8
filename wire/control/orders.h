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

// The bytes of one dataset that one node may keep.
struct Grant {
    std::string node;  // not sent: a sidecar gets only its own node's grants
    std::string dataset_uid;
    Bytes resident_bytes{};
    std::uint32_t valid_seconds = 0;
    std::uint64_t origin_bytes_per_second = 0;  // 0: no limit
    std::string reason;
    std::vector<JobWeight> weights{};  // by job; empty: all jobs equal

    bool operator==(const Grant&) const = default;
};

// Asks a sidecar's trainers to read this many batches past the cache and as many through it, once
// per id.
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

// One message to a sidecar.
struct Orders {
    std::vector<Grant> grants;
    std::optional<Probe> probe;
    std::vector<RevisionPin> pins;

    bool operator==(const Orders&) const = default;
};

}  // namespace stoker::control

#pragma once

#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The file `current.json` of a node directory: the revision whose manifest is in use, and the job
// that listed it. May be deleted at any time; the origin is then listed again.
struct CurrentRevision {
    domain::RevisionId revision{};
    std::string source;       // Origin::describe() at the time
    std::string job_uid;      // the job whose sidecar listed it
    std::string attempt_uid;  // that job's batch/v1 Job at the time
    bool is_taken = false;    // from a peer: no listing of this node has confirmed it

    bool operator==(const CurrentRevision&) const = default;
};

std::string encode_current(const CurrentRevision& current);

// nullopt: not a valid file.
std::optional<CurrentRevision> decode_current(const std::string& text);

// nullopt: missing or unreadable.
std::optional<CurrentRevision> load_current(Device& device, const std::string& directory);
Status save_current(Device& device, const std::string& directory, const CurrentRevision& current);

}  // namespace stoker::sidecar

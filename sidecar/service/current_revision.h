#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The file `current.json` of a node directory: the revision whose manifest is in use, and the attempt
// that reads it. May be deleted at any time; the origin is then listed again.
struct CurrentRevision {
    domain::RevisionId revision{};
    std::string source;                   // Origin::describe() at the time
    std::string job_uid;                  // the job whose key has listed or read it
    std::string attempt_uid;              // that job's batch/v1 Job at the time
    bool is_taken = false;                // from a peer: no listing of this node has confirmed it
    std::optional<WallTime> listed_at{};  // when the listing began, in seconds; nullopt: not known

    bool operator==(const CurrentRevision&) const = default;
};

// How old the listing is; nullopt if that is not known: an older version has listed it, or the clock
// was set back.
std::optional<Duration> age_of(const CurrentRevision& current, WallTime now);

std::string encode_current(const CurrentRevision& current);

// nullopt: not a valid file.
std::optional<CurrentRevision> decode_current(const std::string& text);

// nullopt: missing or unreadable.
std::optional<CurrentRevision> load_current(Device& device, const std::string& directory);
Status save_current(Device& device, const std::string& directory, const CurrentRevision& current);

}  // namespace stoker::sidecar

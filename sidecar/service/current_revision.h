#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The file `current.json` of a node directory: the revision whose manifest is in use, and the
// attempts that read it. May be deleted at any time; the origin is then listed again.
struct CurrentRevision {
    domain::RevisionId revision{};
    std::string source;                   // Origin::describe() at the time
    std::string job_uid;                  // the job whose key was the last to list or read it
    std::string attempt_uid;              // that job's batch/v1 Job at the time
    bool is_taken = false;                // from a peer: no listing of this node has confirmed it
    std::optional<WallTime> listed_at{};  // when the listing began, in seconds; nullopt: not known
    // Other attempts that have read it, the newest first, at most kOtherAttemptsMax. They may run.
    std::vector<std::string> other_attempts{};

    static constexpr std::size_t kOtherAttemptsMax = 7;

    // Whether the attempt has read this listing; an empty uid has not.
    [[nodiscard]] bool is_of(const std::string& uid) const;

    bool operator==(const CurrentRevision&) const = default;
};

// How old the listing is; nullopt if that is not known: an older version has listed it, or the clock
// was set back.
std::optional<Duration> age_of(const CurrentRevision& current, WallTime now);

// The same listing, read by this attempt.
CurrentRevision adopted_by(
    CurrentRevision current, const std::string& job_uid, const std::string& attempt_uid);

std::string encode_current(const CurrentRevision& current);

// nullopt: not a valid file.
std::optional<CurrentRevision> decode_current(const std::string& text);

// nullopt: missing or unreadable.
std::optional<CurrentRevision> load_current(Device& device, const std::string& directory);
Status save_current(Device& device, const std::string& directory, const CurrentRevision& current);

// Blocking: removes `listed_at` from the file, unless another revision is current. An object is not
// as it was listed, so the listing must not count as young. A failure (the disk is full) changes
// nothing.
void forget_age(Device& device, const std::string& directory, domain::RevisionId revision);

}  // namespace stoker::sidecar

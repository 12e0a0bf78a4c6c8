#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The file `current.json` of a node directory: which revision's manifest is in use, and who listed
// it. It may be deleted at any time; then the origin is listed again.
struct CurrentRevision {
    domain::RevisionId revision{};
    std::string source;       // Origin::describe() at the time
    std::string job_uid;      // of the job whose sidecar listed it
    std::string attempt_uid;  // of its batch/v1 Job at the time

    bool operator==(const CurrentRevision&) const = default;
};

std::string encode_current(const CurrentRevision& current);

// nullopt for anything that is not such a file.
std::optional<CurrentRevision> decode_current(const std::string& text);

// nullopt: there is none, or none that can be read.
std::optional<CurrentRevision> load_current(Device& device, const std::string& directory);
Status save_current(Device& device, const std::string& directory, const CurrentRevision& current);

}  // namespace stoker::sidecar

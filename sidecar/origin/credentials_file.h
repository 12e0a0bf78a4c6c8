#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "sidecar/origin/credentials.h"

namespace stoker::sidecar {

// Credentials that another program renews in a JSON file, in the format of an AWS
// `credential_process`: {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}, the last
// two optional. Read at most once a second. `clock` must outlive the source. get(): kForbidden (no
// such file, invalid JSON, expired and not renewed); the message names the file.
std::unique_ptr<CredentialSource> credentials_from_file(
    const std::string& path, const Clock& clock);

}  // namespace stoker::sidecar

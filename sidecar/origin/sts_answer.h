#pragma once

#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/credentials.h"

// Answers of a token service (STS). Pure.
namespace stoker::sidecar {

// "2026-01-31T12:00:00Z", also with a fraction of a second or the offset +00:00. Times before
// 1970 and after 2200 become those. nullopt: not that.
std::optional<WallTime> parse_iso_time(std::string_view text);

// The answer to AssumeRoleWithWebIdentity with status 200; `expires` is set. kUnavailable: it is
// cut short, or not that answer.
Result<TemporaryCredentials> parse_sts_credentials(std::string_view xml);

// The error for another status: kForbidden where the service refuses (the message has its code and
// words), kUnavailable where it may do it later.
Error sts_refusal(int status, std::string_view xml);

}  // namespace stoker::sidecar

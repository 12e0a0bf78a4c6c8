#pragma once

#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/credentials.h"

// Answers of a token service (STS). Pure.
namespace stoker::sidecar {

// Parses "2026-01-31T12:00:00Z", also with a fraction of a second or the offset +00:00. Clamps to
// 1970..2200. nullopt: another format.
std::optional<WallTime> parse_iso_time(std::string_view text);

// Parses the answer to AssumeRoleWithWebIdentity with status 200; sets `expires`. kUnavailable:
// truncated, or another document.
Result<TemporaryCredentials> parse_sts_credentials(std::string_view xml);

// The error for another status: kForbidden if the service refuses (the message quotes its code and
// text), kUnavailable if a retry may succeed.
Error sts_refusal(int status, std::string_view xml);

}  // namespace stoker::sidecar

#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/object_dialect.h"
#include "sidecar/origin/origin.h"

namespace stoker::sidecar {

// An origin behind HTTP. The thread of its HTTP client decides (what to send, retry, give up),
// moves bytes straight into the payloads and calls `done`. `url` begins with the scheme of its
// requests. `clock` and options.metrics must outlive it. kInvalidArgument: the CA file cannot be read.
Result<std::unique_ptr<Origin>> make_remote_origin(
    std::unique_ptr<const ObjectDialect> dialect,
    std::string_view url,
    const OriginOptions& options,
    std::unique_ptr<CredentialSource> credentials,
    const Clock& clock,
    std::uint64_t seed);

}  // namespace stoker::sidecar

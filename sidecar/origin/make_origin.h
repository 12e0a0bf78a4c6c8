#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/origin/origin.h"
#include "sidecar/origin/origin_metrics.h"
#include "sidecar/origin/retry.h"
#include "sidecar/origin/s3_request.h"

namespace stoker::sidecar {

struct OriginOptions {
    // S3 only.
    std::string endpoint{};  // "http://versity.ml.svc:7070"; empty: Amazon's of the region
    std::string region = "us-east-1";
    S3Addressing addressing = S3Addressing::kAuto;
    std::string credentials_directory{};  // a mounted Secret; empty: the environment
    std::string ca_file{};                // to trust instead of the system's, for https
    bool verify_tls = true;
    Duration connect_timeout = std::chrono::seconds{5};
    Duration stall_timeout = std::chrono::seconds{20};  // without one byte, the first included
    RetryPolicy retry{};

    // Objects beyond this are refused with kResourceExhausted, because a fetch holds its object in
    // memory as a whole: the client reads them at the origin. Peak memory of all fetches together:
    // see FetchScheduler.
    Bytes object_bytes_max = gib(1);
    Bytes bytes_in_flight_max = mib(256);
    std::uint32_t max_in_flight = 64;  // requests at a time; for directories: threads, at most 16

    // Compare each object with its ETag where that looks like an MD5 (32 hex digits). Amazon's is
    // one only for objects uploaded in one piece without SSE-KMS or SSE-C; costs about 2 ms of
    // processor time a MiB.
    bool verify_md5 = false;

    OriginMetrics* metrics = nullptr;
};

// The origin of "s3://bucket/folder" or "file:///directory". `environment` is asked once, for S3
// credentials; `clock` and options.metrics must outlive the origin; `seed` is the luck of its retry
// jitter. kInvalidArgument: what `uri` or an option says cannot be. kNotFound, kForbidden: the
// directory. A bucket is not asked: the first list() or fetch() tells.
Result<std::unique_ptr<Origin>> make_origin(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed);

}  // namespace stoker::sidecar

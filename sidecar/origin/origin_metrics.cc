#include "sidecar/origin/origin_metrics.h"

#include <string>

#include "common/base/error.h"

namespace stoker::sidecar {

namespace {

// Errors whose series exist from the start: a rate needs the step from 0.
constexpr ErrorCode kCodesOfFetches[] = {
    ErrorCode::kInvalidArgument,
    ErrorCode::kNotFound,
    ErrorCode::kConflict,
    ErrorCode::kGone,
    ErrorCode::kForbidden,
    ErrorCode::kUnavailable,
    ErrorCode::kDeadlineExceeded,
    ErrorCode::kCorruption,
};

}  // namespace

OriginMetrics::OriginMetrics(metrics::Registry& registry)
    : requests(registry.counter_family(
          "stoker_origin_requests_total",
          "Requests sent to the origin, by operation and outcome (HTTP status or error code).",
          {"operation", "outcome"})),
      retries(registry.counter(
          "stoker_origin_retries_total", "Requests to the origin that repeated a failed one.")),
      received_bytes(registry.counter(
          "stoker_origin_received_bytes_total",
          "Payload bytes received from the origin, failed attempts included.")),
      first_byte_seconds(registry.histogram(
          "stoker_origin_first_byte_seconds",
          "Time from sending a request for an object to the first byte of the answer.",
          metrics::exponential_bounds(0.001, 2, 15))),
      failed_objects(registry.counter_family(
          "stoker_origin_failed_objects_total",
          "Objects that could not be fetched after all retries, by error code.",
          {"code"})) {
    for (const ErrorCode code : kCodesOfFetches) {
        failed_objects.with({std::string{to_string(code)}});
    }
}

}  // namespace stoker::sidecar

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/origin/credentials.h"
#include "sidecar/origin/make_origin.h"

namespace stoker::sidecar {

// Writes objects below an S3 prefix or into a directory. Thread-safe.
class ObjectWriter {
public:
    virtual ~ObjectWriter() = default;

    // Writes or replaces an object in one step: a reader finds the old object, none, or the whole
    // new one. Blocking. Retries like an Origin. `key` is a plain name, without '/'. The message
    // names the key: kForbidden, kNotFound (the bucket), kUnavailable, kResourceExhausted (disk
    // full), kInvalidArgument.
    virtual Status put(const std::string& key, std::span<const std::byte> bytes) = 0;
};

// Takes the URIs and options of make_origin(). Creates a missing directory, but no bucket. Errors:
// as make_origin().
Result<std::unique_ptr<ObjectWriter>> make_object_writer(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed);

}  // namespace stoker::sidecar

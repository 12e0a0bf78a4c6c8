#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace stoker::sidecar {

// False only when `etag` has the form of an MD5 (32 hex digits, no part count) and is not that of
// `bytes`. Pure.
bool matches_md5_etag(std::span<const std::byte> bytes, std::string_view etag);

}  // namespace stoker::sidecar

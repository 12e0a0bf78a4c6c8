#include "sidecar/origin/small_file.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/read_file.h"

namespace stoker::sidecar {

namespace {

constexpr std::uintmax_t kBytesMax = 64 * 1024;

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
    const auto refuse = [&path](const std::string& why) {
        return fail(ErrorCode::kForbidden, fmt::format("{} {}", path, why));
    };
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error && ::access(path.c_str(), R_OK) != 0) {
        error = {errno, std::generic_category()};
    }
    if (error) {
        return refuse(fmt::format("cannot be read: {}", error.message()));
    }
    if (size > kBytesMax) {
        return refuse("is larger than 64 KiB");
    }
    const auto text = read_filled_file(path);
    return text ? text : refuse("is empty");
}

}  // namespace stoker::sidecar

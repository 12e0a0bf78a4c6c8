#include "sidecar/origin/small_file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kBytesMax = 64 * 1024;

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
    const auto refuse = [&path](const char* why) {
        return fail(ErrorCode::kForbidden, fmt::format("{} {}", path, why));
    };
    const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (!file.valid()) {
        return refuse(fmt::format("cannot be read: {}", std::strerror(errno)).c_str());
    }
    std::string text;
    std::array<char, 4096> piece{};
    while (text.size() <= kBytesMax) {
        const ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return refuse(fmt::format("cannot be read: {}", std::strerror(errno)).c_str());
        }
        if (got == 0) {
            break;
        }
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    if (text.size() > kBytesMax) {
        return refuse("is larger than 64 KiB");
    }
    text.erase(text.find_last_not_of(" \r\n") + 1);
    if (text.empty()) {
        return refuse("is empty");
    }
    return text;
}

}  // namespace stoker::sidecar

#include "node/core/pool_marker.h"

#include <fmt/format.h>

namespace stoker::node {

namespace {

constexpr std::string_view kBefore = R"({"schema":1,"pool":")";
constexpr std::string_view kAfter = "\"}\n";
constexpr std::string_view kLostAndFound = "lost+found";
constexpr std::string_view kUnfinished = ".stoker-pool.new";  // until write_small_file() renames it

}  // namespace

std::string format_marker(std::string_view pool) {
    return fmt::format("{}{}{}", kBefore, pool, kAfter);
}

std::optional<std::string> parse_marker(std::string_view text) {
    if (text.size() <= kBefore.size() + kAfter.size() || !text.starts_with(kBefore) ||
        !text.ends_with(kAfter)) {
        return std::nullopt;
    }
    const std::string_view name =
        text.substr(kBefore.size(), text.size() - kBefore.size() - kAfter.size());
    if (name.find_first_of("\"\\\n") != std::string_view::npos) {
        return std::nullopt;
    }
    return std::string{name};
}

std::vector<std::string> foreign_entries(const std::vector<TopEntry>& entries) {
    std::vector<std::string> foreign;
    for (const TopEntry& entry : entries) {
        if (entry.name != kLostAndFound && entry.name != kUnfinished &&
            !entry.is_from_version_0_1) {
            foreign.push_back(entry.name);
        }
    }
    return foreign;
}

}  // namespace stoker::node

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A file at the top of a pool's directory says that the directory is Stoker's, and which
// CachePool's. Without it nothing in a directory is touched. Pure.
namespace stoker::node {

inline constexpr std::string_view kPoolMarkerFile = ".stoker-pool";

// One line of JSON.
std::string format_marker(std::string_view pool);

// The pool's name; none for any text that format_marker() would not write.
std::optional<std::string> parse_marker(std::string_view text);

// One entry at the top of a directory that has no marker.
struct TopEntry {
    std::string name;
    // It is a folder with node directories of Stoker 0.1 in it, and nothing else.
    bool is_from_version_0_1 = false;
};

// The entries that keep the directory from becoming a pool's; empty: it may become one. A file
// system's own "lost+found" does not count.
std::vector<std::string> foreign_entries(const std::vector<TopEntry>& entries);

}  // namespace stoker::node

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The marker file at the top of a pool's directory: it records that the directory belongs to
// Stoker, and to which CachePool. Stoker changes nothing in a directory without it. Pure.
namespace stoker::node {

inline constexpr std::string_view kPoolMarkerFile = ".stoker-pool";

// The marker file's text: one line of JSON.
std::string format_marker(std::string_view pool);

// Parses the pool's name from a marker; nullopt: the text was not written by format_marker().
std::optional<std::string> parse_marker(std::string_view text);

// One entry at the top of a directory that has no marker.
struct TopEntry {
    std::string name;
    // True if it is a folder that holds node directories of Stoker 0.1 and nothing else.
    bool is_from_version_0_1 = false;
};

// The entries that prevent the directory from becoming a pool's directory; empty: it may become
// one. Ignores a file system's "lost+found", and a marker that a killed process left unfinished.
std::vector<std::string> foreign_entries(const std::vector<TopEntry>& entries);

}  // namespace stoker::node

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/posix_error.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

// System calls on folders by descriptor. No call follows a symbolic link in a name that it is
// given: tenants can plant one anywhere in their node directories. Thread-safe.
namespace stoker::node {

// A path on the host, where symbolic links are the administrator's and are followed inside `root`.
// Never leaves `root`.
Result<UniqueFd> open_host_folder(int root, const std::string& path);

// An entry of an open folder. kNotFound: there is none. kInvalidArgument: it is no folder.
Result<UniqueFd> open_folder(int folder, const std::string& name);

// The folder, made with `mode` when it was missing.
Result<UniqueFd> make_folder(int folder, const std::string& name, unsigned mode);

enum class EntryKind : std::uint8_t { kFolder, kFile, kOther };

// Calls `visit` with the name and kind of each entry but "." and ".."; false ends the walk.
Status each_entry(
    int folder, const std::function<bool(const std::string& name, EntryKind kind)>& visit);

// The first 4 KiB of a regular file; none where there is no file.
Result<std::optional<std::string>> read_small_file(int folder, const std::string& name);

// Written beside and renamed over, synced.
Status write_small_file(int folder, const std::string& name, std::string_view text);

}  // namespace stoker::node

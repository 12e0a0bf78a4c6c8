#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/posix_error.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

// System calls on folders by descriptor. No call follows a symbolic link in the name it gets,
// because tenants can create links anywhere in their node directories. Thread-safe.
namespace stoker::node {

// Opens a path on the host. Follows the path's symbolic links, which the administrator made, but
// never out of `root`.
Result<UniqueFd> open_host_folder(int root, const std::string& path);

// Opens a folder inside an open folder. kNotFound: no such entry. kInvalidArgument: not a folder.
Result<UniqueFd> open_folder(int folder, const std::string& name);

// Opens the folder; creates it with `mode` if it is missing.
Result<UniqueFd> make_folder(int folder, const std::string& name, unsigned mode);

enum class EntryKind : std::uint8_t { kFolder, kFile, kOther };

// Calls `visit` with the name and kind of each entry except "." and ".."; false ends the walk.
Status each_entry(
    int folder, const std::function<bool(const std::string& name, EntryKind kind)>& visit);

// The first 4 KiB of a regular file; nullopt if there is no file.
Result<std::optional<std::string>> read_small_file(int folder, const std::string& name);

// Writes a temporary file, syncs it and renames it over the old one.
Status write_small_file(int folder, const std::string& name, std::string_view text);

}  // namespace stoker::node

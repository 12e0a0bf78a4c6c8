#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/domain/block_format.h"
#include "common/domain/manifest.h"

// The folders and files of a manifest, whose keys are paths. Pure.
namespace stoker::files {

// Identifies a file or folder of one manifest without a table: 1 is the root; any other id is the
// number of the node's first sample plus one, times 4096, plus the depth of a folder (0: a file).
using NodeId = std::uint64_t;

inline constexpr NodeId kRoot = 1;
inline constexpr std::size_t kNameBytesMax = 255;

struct FileNode {
    NodeId id = kRoot;
    bool is_folder = true;
    domain::StoredObject object;  // for a file
    std::string_view name;        // for an entry of list()

    [[nodiscard]] std::uint64_t size_bytes() const { return is_folder ? 0 : object.size_bytes; }
};

// Thread-safe: immutable, as is the manifest, which must outlive it. The views point into the
// manifest. An object is hidden (no file) if a part of its key is empty, ".", ".." or longer than
// kNameBytesMax, contains a byte 0, or if a folder has its name. No memory per sample.
class FileTree {
public:
    // Examines every sample once.
    explicit FileTree(const domain::ManifestView& manifest);

    // The file or folder with this id. nullopt: there is none.
    [[nodiscard]] std::optional<FileNode> find(NodeId id) const;
    [[nodiscard]] std::optional<FileNode> lookup(NodeId folder, std::string_view name) const;

    // Receives an entry of a folder and the position after it; returns false to stop. list() visits
    // the entries from `position` on (0: the first), in the order of their keys, and returns false
    // if there is no such folder.
    using Visit = std::function<bool(const FileNode& entry, std::uint64_t next)>;
    bool list(NodeId folder, std::uint64_t position, const Visit& visit) const;

    // Number of files. hidden_count(): number of objects that are not shown as files.
    [[nodiscard]] std::uint64_t file_count() const { return file_count_; }

    [[nodiscard]] std::uint64_t hidden_count() const { return hidden_count_; }

    [[nodiscard]] const domain::ManifestView& manifest() const { return manifest_; }

private:
    // A folder: the prefix of its keys ("a/b/", or empty) and the range of its samples' ids.
    struct Folder {
        std::string_view prefix;
        std::uint64_t first = 0;
        std::uint64_t end = 0;
        std::uint64_t depth = 0;
    };

    [[nodiscard]] std::optional<Folder> folder(NodeId id) const;
    // The first sample whose key begins with `prefix`; nullopt: none.
    [[nodiscard]] std::optional<std::uint64_t> first_below(const std::string& prefix) const;
    [[nodiscard]] bool is_hidden(const domain::StoredObject& object) const;

    const domain::ManifestView& manifest_;
    std::uint64_t file_count_ = 0;
    std::uint64_t hidden_count_ = 0;
    bool has_conflicts_ = false;  // some file and some folder have the same name
};

}  // namespace stoker::files

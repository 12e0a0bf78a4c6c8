#include "sidecar/files/file_tree.h"

#include <algorithm>
#include <vector>

#include "sidecar/attached/find_object.h"

namespace stoker::files {

namespace {

constexpr unsigned kDepthBits = 12;
constexpr std::uint64_t kDepthMax = (1U << kDepthBits) - 1;

NodeId node_id(std::uint64_t sample, std::uint64_t depth) {
    return ((sample + 1) << kDepthBits) | depth;
}

bool is_name(std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.size() <= kNameBytesMax &&
           part.find('\0') == std::string_view::npos;
}

// Whether every part of the key can be a file name.
bool is_path(std::string_view key) {
    std::uint64_t depth = 0;
    while (true) {
        const auto slash = key.find('/');
        if (!is_name(key.substr(0, slash)) || ++depth > kDepthMax) {
            return false;
        }
        if (slash == std::string_view::npos) {
            return true;
        }
        key.remove_prefix(slash + 1);
    }
}

// The first `depth` parts of the key, with a slash at the end; empty: the key has fewer folders.
std::string_view folder_prefix(std::string_view key, std::uint64_t depth) {
    std::size_t end = 0;
    for (; depth > 0; --depth) {
        const auto slash = key.find('/', end);
        if (slash == std::string_view::npos) {
            return {};
        }
        end = slash + 1;
    }
    return key.substr(0, end);
}

// Finds keys that are also folders: "a" beside "a/b".
class ConflictSearch {
public:
    // Call with each key once, in rising order. True: an earlier key is a folder of this one.
    bool add(std::string_view key) {
        while (!begins_.empty() && !key.starts_with(begins_.back())) {
            begins_.pop_back();
        }
        const bool found = std::ranges::any_of(
            begins_, [key](std::string_view begin) { return key[begin.size()] == '/'; });
        begins_.push_back(key);
        return found;
    }

private:
    std::vector<std::string_view> begins_;  // earlier keys that are prefixes of the last key
};

}  // namespace

FileTree::FileTree(const domain::ManifestView& manifest)
    : manifest_(manifest) {
    ConflictSearch conflicts;
    for (std::uint64_t id = 0; id < manifest.sample_count();) {
        const auto object = domain::object_of(manifest, domain::SampleId{id});
        has_conflicts_ = conflicts.add(object.key) || has_conflicts_;
        id = attached::id_after(object);
        ++file_count_;
    }
    const std::uint64_t objects = file_count_;
    for (std::uint64_t id = 0; id < manifest.sample_count();) {
        const auto object = domain::object_of(manifest, domain::SampleId{id});
        file_count_ -= is_hidden(object) ? 1 : 0;
        id = attached::id_after(object);
    }
    hidden_count_ = objects - file_count_;
}

std::optional<std::uint64_t> FileTree::first_below(const std::string& prefix) const {
    const std::uint64_t id = attached::lower_bound(manifest_, prefix);
    const bool found = id < manifest_.sample_count() &&
                       manifest_.sample(domain::SampleId{id}).key.starts_with(prefix);
    return found ? std::optional{id} : std::nullopt;
}

bool FileTree::is_hidden(const domain::StoredObject& object) const {
    return !is_path(object.key) ||
           (has_conflicts_ && first_below(std::string{object.key} + '/').has_value());
}

std::optional<FileTree::Folder> FileTree::folder(NodeId id) const {
    if (id == kRoot) {
        return Folder{"", 0, manifest_.sample_count(), 0};
    }
    const std::uint64_t depth = id & kDepthMax;
    const std::uint64_t first = (id >> kDepthBits) - 1;
    if (id >> kDepthBits == 0 || first >= manifest_.sample_count() || depth == 0) {
        return std::nullopt;
    }
    const std::string_view prefix =
        folder_prefix(manifest_.sample(domain::SampleId{first}).key, depth);
    const bool is_first =
        !prefix.empty() && first_below(std::string{prefix}) == std::optional{first};
    if (!is_first || !is_path(prefix.substr(0, prefix.size() - 1))) {
        return std::nullopt;
    }
    return Folder{prefix, first, attached::after_prefix(manifest_, first, prefix), depth};
}

std::optional<FileNode> FileTree::find(NodeId id) const {
    if ((id & kDepthMax) != 0) {
        return folder(id) ? std::optional{FileNode{id, true, {}, {}}} : std::nullopt;
    }
    const std::uint64_t sample = (id >> kDepthBits) - 1;
    if (id == 0 || sample >= manifest_.sample_count()) {
        return std::nullopt;
    }
    const auto object = domain::object_of(manifest_, domain::SampleId{sample});
    const bool is_file = object.first.value() == sample && !is_hidden(object);
    return is_file ? std::optional{FileNode{id, false, object, {}}} : std::nullopt;
}

std::optional<FileNode> FileTree::lookup(NodeId parent, std::string_view name) const {
    const auto in = folder(parent);
    if (!in || !is_name(name) || name.find('/') != std::string_view::npos) {
        return std::nullopt;
    }
    std::string path{in->prefix};
    path += name;
    if (const auto first = first_below(path + '/')) {
        return find(node_id(*first, in->depth + 1));
    }
    const auto object = attached::find_object(manifest_, path);
    if (!object || !is_path(object->key)) {
        return std::nullopt;
    }
    return FileNode{node_id(object->first.value(), 0), false, *object, {}};
}

bool FileTree::list(NodeId id, std::uint64_t position, const Visit& visit) const {
    const auto in = folder(id);
    if (!in) {
        return false;
    }
    const std::uint64_t samples = in->end - in->first;
    for (std::uint64_t at = in->first + std::min(position, samples); at < in->end;) {
        const auto object = domain::object_of(manifest_, domain::SampleId{at});
        const std::string_view rest = object.key.substr(in->prefix.size());
        const std::string_view name = rest.substr(0, rest.find('/'));
        FileNode entry{node_id(object.first.value(), 0), false, object, name};
        bool is_shown = false;
        if (name.size() == rest.size()) {
            at = attached::id_after(object);
            is_shown = !is_hidden(object);
        } else {
            const std::string below = std::string{in->prefix} + std::string{name} + '/';
            const auto first = first_below(below);
            at = attached::after_prefix(manifest_, at, below);
            entry = {node_id(first.value_or(0), in->depth + 1), true, {}, name};
            is_shown = is_name(name) && in->depth < kDepthMax;
        }
        if (is_shown && !visit(entry, at - in->first)) {
            return true;
        }
    }
    return true;
}

}  // namespace stoker::files

#include "node/disk/tree.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/disk/posix.h"

namespace stoker::node {

namespace {

constexpr std::uint64_t kBlockBytes = 512;  // unit of st_blocks

// Opens a folder below `root` without following links or entering other file systems.
UniqueFd open_below(int root, const std::string& path) {
    open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    return UniqueFd{
        static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)))};
}

struct Names {
    std::vector<std::string> folders;
    std::vector<std::string> others;
};

Result<Names> names_in(int folder) {
    Names names;
    STOKER_TRY_VOID(each_entry(folder, [&](const std::string& name, EntryKind kind) {
        (kind == EntryKind::kFolder ? names.folders : names.others).push_back(name);
        return true;
    }));
    return names;
}

Status remove_entry(int folder, const std::string& name, int flags) {
    if (::unlinkat(folder, name.c_str(), flags) != 0 && errno != ENOENT) {
        return fail(posix_error(errno, "removing", name));
    }
    return {};
}

// Moves the folders in `name` up to `top` and removes the rest, so that a tree of any depth is
// never deeper than two levels during its removal.
Status remove_one_level(int top, const std::string& name, std::uint64_t& moved) {
    STOKER_TRY(const UniqueFd folder, open_folder(top, name));
    STOKER_TRY(const Names names, names_in(folder.get()));
    for (const std::string& other : names.others) {
        STOKER_TRY_VOID(remove_entry(folder.get(), other, 0));
    }
    for (const std::string& inner : names.folders) {
        // A tenant's file may have this name already; RENAME_NOREPLACE then tries the next one.
        std::string beside;
        int result = 0;
        do {
            beside = fmt::format(".removing-{}", moved++);
            result =
                ::renameat2(folder.get(), inner.c_str(), top, beside.c_str(), RENAME_NOREPLACE);
        } while (result != 0 && errno == EEXIST);
        if (result != 0) {
            return fail(posix_error(errno, "moving", inner));
        }
    }
    return remove_entry(top, name, AT_REMOVEDIR);
}

}  // namespace

Result<TreeUse> measure_tree(int folder, std::uint64_t entries_max) {
    TreeUse use;
    std::vector<std::string> waiting = {"."};
    while (!waiting.empty() && use.complete) {
        const std::string path = std::move(waiting.back());
        waiting.pop_back();
        const UniqueFd here = open_below(folder, path);
        if (!here.valid()) {
            continue;  // it was removed meanwhile, or its path is too long for the kernel
        }
        STOKER_TRY_VOID(each_entry(here.get(), [&](const std::string& name, EntryKind kind) {
            struct stat status {};
            if (::fstatat(here.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
                const auto links = std::max<std::uint64_t>(status.st_nlink, 1);
                const auto names = S_ISDIR(status.st_mode) ? 1 : links;
                use.allocated +=
                    Bytes{static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes / names};
            }
            if (kind == EntryKind::kFolder) {
                waiting.push_back(path + "/" + name);
            }
            use.complete = ++use.entries < entries_max;
            return use.complete;
        }));
    }
    return use;
}

Status empty_tree(int folder) {
    std::uint64_t moved = 0;
    while (true) {
        STOKER_TRY(const Names names, names_in(folder));
        for (const std::string& other : names.others) {
            STOKER_TRY_VOID(remove_entry(folder, other, 0));
        }
        if (names.folders.empty()) {
            return {};
        }
        for (const std::string& name : names.folders) {
            STOKER_TRY_VOID(remove_one_level(folder, name, moved));
        }
    }
}

}  // namespace stoker::node

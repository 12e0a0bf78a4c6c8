#include "sidecar/files/file_tree.h"

#include <map>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/manifest_of.h"
#include "tests/support/test_seed.h"

namespace stoker::files {
namespace {

using test::blocks_of;
using test::Manifest;
using test::manifest_of;

std::vector<std::string> names_in(const FileTree& tree, NodeId folder) {
    std::vector<std::string> names;
    tree.list(folder, 0, [&](const FileNode& entry, std::uint64_t /*next*/) {
        names.push_back(std::string{entry.name} + (entry.is_folder ? "/" : ""));
        return true;
    });
    return names;
}

// The file at the path; nullopt: none.
std::optional<FileNode> walk(const FileTree& tree, std::string_view path) {
    NodeId at = kRoot;
    while (true) {
        const auto slash = path.find('/');
        const auto found = tree.lookup(at, path.substr(0, slash));
        if (!found || slash == std::string_view::npos) {
            return found;
        }
        at = found->id;
        path.remove_prefix(slash + 1);
    }
}

TEST(FileTree, ShowsFoldersAndFiles) {
    const Manifest manifest = manifest_of({"cat/1", "cat/2", "dog/old/3", "dog/4", "readme"});
    const FileTree tree{manifest.view};
    EXPECT_EQ(names_in(tree, kRoot), (std::vector<std::string>{"cat/", "dog/", "readme"}));
    const auto dog = tree.lookup(kRoot, "dog");
    ASSERT_TRUE(dog && dog->is_folder);
    EXPECT_EQ(names_in(tree, dog->id), (std::vector<std::string>{"4", "old/"}));
    const auto file = walk(tree, "dog/old/3");
    ASSERT_TRUE(file && !file->is_folder);
    EXPECT_EQ(file->object.key, "dog/old/3");
    EXPECT_EQ(file->size_bytes(), 9U);
    EXPECT_EQ(tree.file_count(), 5U);
    for (const char* absent : {"do", "dog/", "cow", "", ".", "..", "cat/1"}) {
        EXPECT_FALSE(tree.lookup(kRoot, absent)) << absent;
    }
}

TEST(FileTree, HidesKeysThatAreNoPaths) {
    const std::string long_name(256, 'x');
    const Manifest manifest = manifest_of(
        {"a", "a/b", "/root", "x//y", "x/./y", "x/../y", "x/z", long_name, long_name + "/y"});
    const FileTree tree{manifest.view};
    EXPECT_EQ(names_in(tree, kRoot), (std::vector<std::string>{"a/", "x/"}));
    EXPECT_EQ(names_in(tree, tree.lookup(kRoot, "x")->id), (std::vector<std::string>{"z"}));
    EXPECT_TRUE(tree.lookup(kRoot, "a")->is_folder) << "a folder hides a file of its name";
    EXPECT_EQ(tree.file_count(), 2U);
    EXPECT_EQ(tree.hidden_count(), 7U);
}

TEST(FileTree, ShowsAnObjectOfBlocksAsOneFile) {
    const Manifest manifest = blocks_of({{"d/a", 25}, {"d/b", 5}, {"d/c", 20}}, 10);
    const FileTree tree{manifest.view};
    const auto folder = tree.lookup(kRoot, "d");
    ASSERT_TRUE(folder);
    EXPECT_EQ(names_in(tree, folder->id), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(tree.lookup(folder->id, "a")->size_bytes(), 25U);
    EXPECT_EQ(tree.lookup(folder->id, "c")->object.sample_count, 2U);
    EXPECT_EQ(tree.file_count(), 3U);
}

TEST(FileTree, RefusesNumbersOfNoFile) {
    const Manifest manifest = manifest_of({"a/1", "a/2", "b"});
    const FileTree tree{manifest.view};
    Prng random{test::seed()};
    std::set<NodeId> known = {kRoot};
    for (const char* path : {"a", "a/1", "a/2", "b"}) {
        known.insert(walk(tree, path)->id);
    }
    for (int round = 0; round < 20'000; ++round) {
        const NodeId id = round < 16'384 + 4 ? static_cast<NodeId>(round) : random();
        EXPECT_EQ(tree.find(id).has_value(), known.contains(id)) << id;
    }
}

TEST(FileTree, ListsFromEveryPosition) {
    const Manifest manifest = manifest_of({"a/1", "a/2", "b", "c/d/e", "c/f", "g"});
    const FileTree tree{manifest.view};
    std::vector<std::string> names;
    std::uint64_t position = 0;
    const auto take_one = [&](const FileNode& entry, std::uint64_t next) {
        names.emplace_back(entry.name);
        position = next;
        return false;
    };
    for (std::size_t before = 1; names.size() != before;) {
        before = names.size();
        EXPECT_TRUE(tree.list(kRoot, position, take_one));
    }
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "g"}));
    EXPECT_TRUE(tree.list(kRoot, UINT64_MAX, take_one));
    EXPECT_EQ(names.size(), 4U);
    EXPECT_FALSE(tree.list(walk(tree, "b")->id, 0, take_one));
}

// Compares with a map of paths: every file is found by path, in its folder's list, and by id.
TEST(FileTree, AgreesWithAModelOnRandomKeys) {
    Prng random{test::seed()};
    for (int round = 0; round < 50; ++round) {
        std::set<std::string> keys;
        for (int at = 0; at < 40; ++at) {
            std::string key = fmt::format("{}", static_cast<char>('a' + random.below(3)));
            for (std::uint64_t depth = random.below(4); depth > 0; --depth) {
                key += fmt::format("{}{}", random.below(4) == 0 ? "-" : "/", random.below(3));
            }
            keys.insert(key);
        }
        std::map<std::string, std::set<std::string>> folders;
        std::set<std::string> files;
        for (const std::string& key : keys) {
            const auto later = keys.lower_bound(key + "/");
            if (later == keys.end() || !later->starts_with(key + "/")) {
                files.insert(key);
            }
            std::string at = key;
            for (bool is_file = files.contains(key); !at.empty(); is_file = false) {
                const auto slash = at.rfind('/');
                const std::string name = slash == std::string::npos ? at : at.substr(slash + 1);
                at = slash == std::string::npos ? "" : at.substr(0, slash);
                if (is_file || files.contains(key) || name != key.substr(key.rfind('/') + 1)) {
                    folders[at].insert(name);
                }
            }
        }
        const Manifest manifest = manifest_of(keys);
        const FileTree tree{manifest.view};
        EXPECT_EQ(tree.file_count(), files.size());
        for (const std::string& file : files) {
            const auto found = walk(tree, file);
            ASSERT_TRUE(found && !found->is_folder) << file;
            EXPECT_EQ(tree.find(found->id)->object.key, file);
        }
        for (const auto& [path, names] : folders) {
            const NodeId id = path.empty() ? kRoot : walk(tree, path)->id;
            std::set<std::string> listed;
            tree.list(id, 0, [&](const FileNode& entry, std::uint64_t /*next*/) {
                EXPECT_TRUE(listed.emplace(entry.name).second) << entry.name;
                EXPECT_EQ(tree.lookup(id, entry.name)->id, entry.id);
                return true;
            });
            EXPECT_EQ(listed, names) << path;
        }
    }
}

}  // namespace
}  // namespace stoker::files

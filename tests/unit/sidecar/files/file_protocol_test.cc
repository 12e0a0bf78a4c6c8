#include "sidecar/files/file_protocol.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sys/stat.h>

#include "common/base/prng.h"
#include "tests/support/manifest_of.h"
#include "tests/support/mutate.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/files/fuse_request.h"

namespace stoker::files {
namespace {

constexpr std::uint64_t kUnique = 77;
constexpr std::uint64_t kHandle = 5;

template <class T>
std::vector<std::byte> request(std::uint32_t opcode, std::uint64_t node, const T& body) {
    return fuse_request(opcode, kUnique, node, body);
}

std::vector<std::byte> lookup(std::uint64_t node, std::string_view name) {
    std::vector<std::byte> bytes = request(FUSE_LOOKUP, node, char{});
    bytes.pop_back();
    const auto text = std::as_bytes(std::span{name});
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.push_back(std::byte{0});
    const auto length = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes;
}

fuse_read_in range(std::uint64_t offset, std::uint32_t size) {
    fuse_read_in wanted{};
    wanted.fh = kHandle;
    wanted.offset = offset;
    wanted.size = size;
    return wanted;
}

template <class T>
T payload(const Outcome& outcome) {
    T value{};
    EXPECT_EQ(outcome.step, Step::kReply);
    EXPECT_EQ(outcome.reply.size(), sizeof(fuse_out_header) + sizeof value);
    std::memcpy(&value, outcome.reply.data() + sizeof(fuse_out_header), sizeof value);
    return value;
}

fuse_out_header head_of(const Outcome& outcome) {
    fuse_out_header head{};
    EXPECT_GE(outcome.reply.size(), sizeof head);
    std::memcpy(&head, outcome.reply.data(), sizeof head);
    return head;
}

class FileProtocol : public ::testing::Test {
protected:
    Outcome answer(std::span<const std::byte> bytes) const {
        return handle(bytes, {&tree_, modified_}, kHandle);
    }

    int error(std::span<const std::byte> bytes) const {
        const Outcome outcome = answer(bytes);
        EXPECT_EQ(outcome.step, Step::kReply);
        EXPECT_EQ(head_of(outcome).unique, kUnique);
        return -head_of(outcome).error;
    }

    std::uint64_t node(std::uint64_t folder, std::string_view name) const {
        return payload<fuse_entry_out>(answer(lookup(folder, name))).nodeid;
    }

    test::Manifest manifest_ = test::manifest_of({"cat/1", "cat/22", "dog/333"});
    FileTree tree_{manifest_.view};
    std::chrono::sys_seconds modified_{std::chrono::seconds{1'700'000'000}};
};

TEST_F(FileProtocol, LooksUpNames) {
    const auto cat = payload<fuse_entry_out>(answer(lookup(kRoot, "cat")));
    EXPECT_EQ(cat.attr.mode, S_IFDIR | 0555U);
    EXPECT_EQ(cat.entry_valid, kValidSeconds);
    const auto file = payload<fuse_entry_out>(answer(lookup(cat.nodeid, "22")));
    EXPECT_EQ(file.attr.mode, S_IFREG | 0444U);
    EXPECT_EQ(file.attr.size, 6U);
    EXPECT_EQ(file.attr.mtime, 1'700'000'000U);
    const auto absent = payload<fuse_entry_out>(answer(lookup(kRoot, "cow")));
    EXPECT_EQ(absent.nodeid, 0U);
    EXPECT_EQ(absent.entry_valid, kValidSeconds) << "the kernel remembers that it is absent";
    EXPECT_EQ(error(lookup(kRoot, std::string(256, 'n'))), ENAMETOOLONG);
    EXPECT_EQ(error(lookup(999, "cat")), ESTALE);
}

TEST_F(FileProtocol, OpensFilesForReadingOnly) {
    const std::uint64_t file = node(node(kRoot, "cat"), "1");
    const auto opened = payload<fuse_open_out>(answer(request(FUSE_OPEN, file, fuse_open_in{})));
    EXPECT_EQ(opened.fh, kHandle);
    EXPECT_EQ(opened.open_flags, unsigned{FOPEN_KEEP_CACHE | FOPEN_NOFLUSH});
    EXPECT_EQ(error(request(FUSE_OPEN, file, fuse_open_in{O_RDWR, 0})), EROFS);
    EXPECT_EQ(error(request(FUSE_OPEN, kRoot, fuse_open_in{})), EISDIR);
}

TEST_F(FileProtocol, ReadsEndAtTheFilesEnd) {
    const std::uint64_t file = node(node(kRoot, "dog"), "333");
    const Outcome read = answer(request(FUSE_READ, file, range(2, 4096)));
    EXPECT_EQ(read.step, Step::kRead);
    EXPECT_EQ(read.object.key, "dog/333");
    EXPECT_EQ(read.offset, 2U);
    EXPECT_EQ(read.length, 5U);
    EXPECT_EQ(read.handle, kHandle);
    EXPECT_EQ(read.unique, kUnique);
    EXPECT_EQ(error(request(FUSE_READ, file, range(7, 4096))), 0);
    EXPECT_EQ(error(request(FUSE_READ, file, range(UINT64_MAX, 4096))), 0);
    EXPECT_EQ(error(request(FUSE_READ, kRoot, range(0, 4096))), EISDIR);
}

TEST_F(FileProtocol, ListsAFolderInPieces) {
    std::vector<std::string> names;
    std::uint64_t offset = 0;
    while (true) {
        const Outcome list = answer(request(FUSE_READDIR, kRoot, range(offset, 40)));
        std::span<const std::byte> rest{list.reply};
        rest = rest.subspan(sizeof(fuse_out_header));
        if (rest.empty()) {
            break;
        }
        fuse_dirent entry{};
        std::memcpy(&entry, rest.data(), FUSE_NAME_OFFSET);
        names.emplace_back(
            reinterpret_cast<const char*>(rest.data()) + FUSE_NAME_OFFSET, entry.namelen);
        offset = entry.off;
    }
    EXPECT_EQ(names, (std::vector<std::string>{".", "..", "cat", "dog"}));
    EXPECT_EQ(error(request(FUSE_READDIR, node(node(kRoot, "cat"), "1"), range(0, 99))), ENOTDIR);
}

TEST_F(FileProtocol, AnswersForgetAndInterruptWithNothing) {
    EXPECT_EQ(answer(request(FUSE_FORGET, kRoot, fuse_forget_in{1})).step, Step::kNothing);
    const Outcome cancel = answer(request(FUSE_INTERRUPT, 0, fuse_interrupt_in{12}));
    EXPECT_EQ(cancel.step, Step::kCancel);
    EXPECT_EQ(cancel.unique, 12U);
    EXPECT_EQ(error(request(FUSE_FLUSH, kRoot, fuse_flush_in{})), ENOSYS);
    EXPECT_EQ(error(request(FUSE_OPENDIR, kRoot, fuse_open_in{})), ENOSYS);
    EXPECT_EQ(error(request(FUSE_WRITE, kRoot, fuse_write_in{})), ENOSYS);
}

TEST_F(FileProtocol, OnlyRequestsForTheRootAreAnsweredBeforeTheTreeIsKnown) {
    const auto before = [](std::span<const std::byte> bytes) { return handle(bytes, {}, 1).step; };
    EXPECT_EQ(before(request(FUSE_GETATTR, kRoot, fuse_getattr_in{})), Step::kReply);
    EXPECT_EQ(before(request(FUSE_STATFS, kRoot, char{})), Step::kReply);
    EXPECT_EQ(before(request(FUSE_RELEASE, 4096, fuse_release_in{})), Step::kRelease);
    EXPECT_EQ(before(lookup(kRoot, "cat")), Step::kWait);
    EXPECT_EQ(before(request(FUSE_READ, 4096, range(0, 1))), Step::kWait);
}

// Random bytes: no crash, each reply's header states its length, each read is inside a file.
TEST_F(FileProtocol, SurvivesDamagedRequests) {
    Prng random{test::seed()};
    const std::vector<std::vector<std::byte>> seeds = {
        lookup(kRoot, "cat"),
        request(FUSE_READ, node(node(kRoot, "cat"), "1"), range(0, 4096)),
        request(FUSE_READDIRPLUS, kRoot, range(0, 4096)),
        request(FUSE_OPEN, node(node(kRoot, "cat"), "1"), fuse_open_in{}),
        request(FUSE_GETATTR, kRoot, fuse_getattr_in{})};
    for (int round = 0; round < 20'000; ++round) {
        auto bytes = seeds[random.below(seeds.size())];
        test::mutate(bytes, random);
        if (random.below(2) == 0 && bytes.size() >= sizeof(fuse_in_header)) {
            const auto length = static_cast<std::uint32_t>(bytes.size());
            std::memcpy(bytes.data(), &length, sizeof length);
        }
        const Outcome outcome = answer(bytes);
        if (outcome.step == Step::kReply || outcome.step == Step::kRelease) {
            ASSERT_EQ(head_of(outcome).len, outcome.reply.size());
        } else if (outcome.step == Step::kRead) {
            ASSERT_GE(outcome.length, 1U);
            ASSERT_LE(outcome.offset + outcome.length, outcome.object.size_bytes);
        }
    }
}

}  // namespace
}  // namespace stoker::files

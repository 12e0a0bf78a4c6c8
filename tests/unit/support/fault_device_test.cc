#include "tests/support/fault_device.h"

#include <set>

#include <gtest/gtest.h>

namespace stoker::test {
namespace {

using sidecar::DeviceFile;
using sidecar::Durability;
using sidecar::MapMode;

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto raw = std::as_bytes(std::span{text});
    return {raw.begin(), raw.end()};
}

std::string text_of(const std::optional<std::vector<std::byte>>& bytes) {
    return bytes.has_value()
               ? std::string{reinterpret_cast<const char*>(bytes->data()), bytes->size()}
               : "(no file)";
}

Status write(DeviceFile& file, std::uint64_t offset, std::string_view text) {
    const auto bytes = bytes_of(text);
    const std::array<DeviceFile::ConstBuffer, 1> parts{bytes};
    return file.write(offset, parts);
}

TEST(FaultDevice, KeepsWrittenBytes) {
    FaultDevice device{1};
    const auto file = device.create("/d/a").value();
    ASSERT_TRUE(write(*file, 2, "xyz").has_value());
    EXPECT_EQ(text_of(device.content("/d/a")), std::string("\0\0xyz", 5));
    EXPECT_EQ(file->size_bytes().value(), 5U);
    EXPECT_EQ(device.list("/d").value(), (std::vector<std::string>{"a"}));
    EXPECT_EQ(device.create("/d/a").error().code, ErrorCode::kAlreadyExists);
}

TEST(FaultDevice, ASyncedFileUnderASyncedNameSurvivesAPowerCut) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        FaultDevice device{seed};
        ASSERT_TRUE(sidecar::replace_file(device, "/d/a", bytes_of("kept"), Durability::kPower)
                        .has_value());
        device.power_cut();
        ASSERT_EQ(text_of(device.content("/d/a")), "kept");
    }
}

TEST(FaultDevice, AllThatWasThereAtAShutdownSurvivesAPowerCut) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        FaultDevice device{seed};
        ASSERT_TRUE(write(*device.create("/d/a").value(), 0, "kept").has_value());
        device.sync_all();
        device.power_cut();
        ASSERT_EQ(text_of(device.content("/d/a")), "kept");
    }
}

TEST(FaultDevice, AnUnsyncedNameMayBeLost) {
    std::set<std::string> outcomes;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        FaultDevice device{seed};
        {
            const auto file = device.create("/d/a").value();
            ASSERT_TRUE(write(*file, 0, "kept").has_value() && file->sync().has_value());
        }
        device.power_cut();
        outcomes.insert(text_of(device.content("/d/a")));
    }
    EXPECT_EQ(outcomes, (std::set<std::string>{"(no file)", "kept"}));
}

TEST(FaultDevice, AfterAPowerCutUnsyncedDataIsOldOrNewOrZero) {
    std::set<std::string> outcomes;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        FaultDevice device{seed};
        device.put("/d/a", bytes_of(std::string(1024, 'o')));
        ASSERT_TRUE(write(*device.open("/d/a").value(), 0, std::string(1536, 'n')).has_value());
        device.power_cut();
        const std::string text = text_of(device.content("/d/a"));
        ASSERT_GE(text.size(), 1024U);
        outcomes.insert({text[0], text[600], text.size() > 1024 ? text[1024] : '-'});
    }
    EXPECT_TRUE(outcomes.contains("oo-"));
    EXPECT_TRUE(outcomes.contains("nnn"));
    EXPECT_TRUE(outcomes.contains("onn"));
    EXPECT_TRUE(outcomes.contains(std::string("no\0", 3)));
}

TEST(FaultDevice, AnUnsyncedUnlinkMayComeBack) {
    std::set<std::string> outcomes;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        FaultDevice device{seed};
        device.put("/d/a", bytes_of("old"));
        ASSERT_TRUE(device.unlink("/d/a").has_value());
        EXPECT_EQ(device.open("/d/a").error().code, ErrorCode::kNotFound);
        device.power_cut();
        outcomes.insert(text_of(device.content("/d/a")));
    }
    EXPECT_EQ(outcomes, (std::set<std::string>{"(no file)", "old"}));
}

TEST(FaultDevice, ARenameIsAllOrNothing) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        FaultDevice device{seed};
        device.put("/d/a", bytes_of("old"));
        device.put("/d/b", bytes_of("new"));
        ASSERT_TRUE(device.rename("/d/b", "/d/a").has_value());
        device.power_cut();
        const bool done = !device.content("/d/b").has_value();
        ASSERT_EQ(text_of(device.content("/d/a")), done ? "new" : "old");
    }
}

TEST(FaultDevice, OldHandlesFailAfterAPowerCut) {
    FaultDevice device{1};
    device.put("/d/a", bytes_of("text"));
    const auto file = device.open("/d/a").value();
    const auto map = device.map("/d/a", MapMode::kReadWrite).value();
    const auto lock = device.try_lock("/d/lock").value();
    device.power_cut();
    EXPECT_EQ(write(*file, 0, "late").error().code, ErrorCode::kUnavailable);
    map->writable_bytes()[0] = std::byte{'X'};
    EXPECT_EQ(text_of(device.content("/d/a")), "text");
    EXPECT_NE(device.try_lock("/d/lock").value(), nullptr);
}

TEST(FaultDevice, AMapWritesToTheFile) {
    FaultDevice device{1};
    device.put("/d/a", bytes_of("text"));
    const auto map = device.map("/d/a", MapMode::kReadWrite).value();
    map->writable_bytes()[0] = std::byte{'n'};
    EXPECT_EQ(text_of(device.content("/d/a")), "next");
}

TEST(FaultDevice, AKilledProcessLeavesPartOfItsLastWrite) {
    std::set<std::size_t> lengths;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        FaultDevice device{seed};
        device.kill_after(2);
        const auto file = device.create("/d/a").value();
        ASSERT_TRUE(write(*file, 0, "first").has_value());
        ASSERT_FALSE(write(*file, 5, "123").has_value());
        EXPECT_TRUE(device.is_killed());
        EXPECT_FALSE(file->sync().has_value());
        EXPECT_FALSE(device.open("/d/a").has_value());
        device.revive();
        EXPECT_TRUE(device.open("/d/a").has_value());
        const std::string text = text_of(device.content("/d/a"));
        ASSERT_EQ(text, std::string("first123").substr(0, text.size()));
        lengths.insert(text.size());
    }
    EXPECT_EQ(lengths, (std::set<std::size_t>{5, 6, 7, 8}));
}

TEST(FaultDevice, AFullDiskStoresWhatFits) {
    FaultDevice device{1};
    device.set_capacity(Bytes{10});
    const auto file = device.create("/d/a").value();
    ASSERT_TRUE(write(*file, 0, "123456").has_value());
    EXPECT_EQ(write(*file, 6, "789012").error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(text_of(device.content("/d/a")), "1234567890");
    EXPECT_TRUE(write(*file, 0, "65").has_value());
    EXPECT_EQ(device.space("/d").value().available, Bytes::zero());
    ASSERT_TRUE(file->truncate(2).has_value());
    EXPECT_EQ(device.space("/d").value().available, Bytes{8});
    EXPECT_EQ(file->allocate(11).error().code, ErrorCode::kResourceExhausted);
}

TEST(FaultDevice, ReadOnlyRefusesChangesAndServesReads) {
    FaultDevice device{1};
    device.put("/d/a", bytes_of("text"));
    device.set_read_only(true);
    const auto file = device.open("/d/a").value();
    std::vector<std::byte> out(4);
    EXPECT_EQ(file->read(0, out).value(), 4U);
    EXPECT_EQ(write(*file, 0, "n").error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(device.create("/d/b").error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(device.unlink("/d/a").error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(device.counters().errors, 3U);
}

TEST(FaultDevice, BreaksOneKindOfCall) {
    FaultDevice device{1};
    device.set_broken(FaultDevice::Operation::kSync, true);
    const auto file = device.create("/d/a").value();
    EXPECT_TRUE(write(*file, 0, "text").has_value());
    EXPECT_FALSE(file->sync().has_value());
    device.set_broken(FaultDevice::Operation::kSync, false);
    EXPECT_TRUE(file->sync().has_value());
}

TEST(FaultDevice, FlippedBitsAndCutsAreDurable) {
    FaultDevice device{1};
    device.put("/d/a", bytes_of("abcd"));
    device.flip_bit("/d/a", 0, 1);
    device.cut("/d/a", 3);
    EXPECT_EQ(text_of(device.content("/d/a")), "cbc");
    device.power_cut();
    EXPECT_EQ(text_of(device.content("/d/a")), "cbc");
}

TEST(FaultDevice, AHeldLockCannotBeTaken) {
    FaultDevice device{1};
    auto lock = device.try_lock("/d/lock").value();
    EXPECT_EQ(device.try_lock("/d/lock").value(), nullptr);
    lock.reset();
    EXPECT_NE(device.try_lock("/d/lock").value(), nullptr);
}

TEST(FaultDevice, TheHookSeesEveryOperation) {
    FaultDevice device{1};
    std::vector<std::pair<FaultDevice::Operation, std::string>> seen;
    device.set_hook([&](FaultDevice::Operation operation, const std::string& path) {
        seen.emplace_back(operation, path);
    });
    ASSERT_TRUE(write(*device.create("/d/a").value(), 0, "x").has_value());
    ASSERT_TRUE(device.unlink("/d/a").has_value());
    using Operation = FaultDevice::Operation;
    const std::vector<std::pair<Operation, std::string>> want{
        {Operation::kCreate, "/d/a"}, {Operation::kWrite, "/d/a"}, {Operation::kUnlink, "/d/a"}};
    EXPECT_EQ(seen, want);
}

}  // namespace
}  // namespace stoker::test

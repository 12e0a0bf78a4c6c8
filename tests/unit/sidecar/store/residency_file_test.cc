#include "sidecar/store/residency_file.h"

#include <cstring>

#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using test::FaultDevice;

constexpr domain::ResidencyHeader kHeader{domain::RevisionId{9}, 100};

std::string path() {
    return "/node/" + domain::residency_file(kHeader.revision);
}

TEST(ResidencyFile, StartsWithEverythingAbsent) {
    FaultDevice device{1};
    const auto opened = ResidencyFile::open(device, "/node", kHeader).value();
    EXPECT_FALSE(opened->existed());
    for (std::uint64_t id = 0; id < 100; ++id) {
        EXPECT_EQ(opened->load(SampleId{id}), 0U);
    }
    EXPECT_EQ(device.content(path())->size(), domain::residency_file_bytes(100));
}

TEST(ResidencyFile, IsReusedInPlaceBecauseReadersMapIt) {
    FaultDevice device{1};
    const auto reader = [&] {
        const auto first = ResidencyFile::open(device, "/node", kHeader).value();
        first->store(SampleId{7}, 77);
        return device.map(path(), MapMode::kRead).value();
    }();
    const auto second = ResidencyFile::open(device, "/node", kHeader).value();
    EXPECT_TRUE(second->existed());
    EXPECT_EQ(second->load(SampleId{7}), 77U);
    second->store(SampleId{8}, 88);
    std::uint64_t word = 0;
    std::memcpy(&word, reader->bytes().data() + domain::kResidencyHeaderBytes + 64, sizeof word);
    EXPECT_EQ(word, 88U);
}

TEST(ResidencyFile, ReplacesAFileThatIsNotOurTable) {
    const std::vector<domain::ResidencyHeader> others{
        {domain::RevisionId{9}, 99}, {domain::RevisionId{8}, 100}};
    for (const auto& other : others) {
        FaultDevice device{1};
        std::vector<std::byte> bytes(domain::residency_file_bytes(100));
        std::ranges::copy(domain::encode_residency_header(other), bytes.begin());
        device.put(path(), bytes);
        EXPECT_FALSE(ResidencyFile::open(device, "/node", kHeader).value()->existed());
    }
    FaultDevice device{1};
    device.put(path(), {});
    EXPECT_FALSE(ResidencyFile::open(device, "/node", kHeader).value()->existed());
}

TEST(ResidencyFile, ReplacesATruncatedTable) {
    FaultDevice device{1};
    std::vector<std::byte> bytes(domain::residency_file_bytes(100) - 1);
    std::ranges::copy(domain::encode_residency_header(kHeader), bytes.begin());
    device.put(path(), bytes);
    const auto opened = ResidencyFile::open(device, "/node", kHeader).value();
    EXPECT_FALSE(opened->existed());
    EXPECT_EQ(opened->load(SampleId{99}), 0U);
}

TEST(ResidencyFile, AllocatesItsWholeSpaceAtOnce) {
    FaultDevice device{1};
    device.set_capacity(Bytes{500});
    EXPECT_EQ(
        ResidencyFile::open(device, "/node", kHeader).error().code, ErrorCode::kResourceExhausted);
}

TEST(ResidencyFile, ATransientErrorDoesNotReplaceAMappedTable) {
    FaultDevice device{1};
    ASSERT_TRUE(ResidencyFile::open(device, "/node", kHeader).has_value());
    device.set_broken(FaultDevice::Operation::kMap, true);
    EXPECT_FALSE(ResidencyFile::open(device, "/node", kHeader).has_value());
    device.set_broken(FaultDevice::Operation::kMap, false);
    EXPECT_TRUE(ResidencyFile::open(device, "/node", kHeader).value()->existed());
}

}  // namespace
}  // namespace stoker::sidecar

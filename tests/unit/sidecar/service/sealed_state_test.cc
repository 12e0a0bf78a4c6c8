#include "sidecar/service/sealed_state.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include "tests/support/sample_client.h"

namespace stoker::sidecar {
namespace {

local::Begin begin_of(std::uint64_t served, std::uint64_t snapshot) {
    local::Begin begin;
    begin.served_bytes = served;
    begin.snapshot_bytes = snapshot;
    return begin;
}

TEST(SealedState, ReadsBackWhatWasSealed) {
    BeginState state;
    state.served = {std::byte{3}, std::byte{1}};
    state.snapshot = std::string{"a\0b", 3};
    const auto memfd = seal_begin_state(state).value();
    const auto read = read_begin_state(memfd, begin_of(2, 3), 16).value();
    EXPECT_EQ(read.served, state.served);
    EXPECT_EQ(read.snapshot, state.snapshot);
}

TEST(SealedState, ABeginWithoutStateNeedsNoMemfd) {
    const auto read = read_begin_state({}, begin_of(0, 0), 16).value();
    EXPECT_TRUE(read.served.empty());
    EXPECT_TRUE(read.snapshot.empty());
}

TEST(SealedState, LiesAreRefused) {
    const auto eight = test::sealed_ids({1});
    EXPECT_FALSE(read_begin_state({}, begin_of(1, 0), 16).has_value()) << "no memfd";
    EXPECT_FALSE(read_begin_state(eight, begin_of(2, 0), 16).has_value()) << "another length";
    EXPECT_FALSE(read_begin_state(eight, begin_of(8, 0), 16).has_value()) << "more than samples";
    EXPECT_FALSE(read_begin_state(eight, begin_of(0, kSnapshotBytesMax + 1), 16).has_value());
    EXPECT_FALSE(read_begin_state(eight, begin_of(UINT64_MAX, 9), 16).has_value()) << "overflow";
    const UniqueFd open{::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    EXPECT_FALSE(read_begin_state(open, begin_of(1, 0), 16).has_value()) << "not sealed";
}

}  // namespace
}  // namespace stoker::sidecar

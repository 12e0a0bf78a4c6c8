#include "sidecar/store/store_state.h"

#include <gtest/gtest.h>

#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

StoreState sample_state() {
    StoreState state;
    state.boot_id = "6f0c6a5e-1b7a-4e51-9d3f-0c2b8a1d4e77";
    state.clean = true;
    state.synced = {3, 17, 4294967295U};
    return state;
}

TEST(StoreState, IsOneLineOfJson) {
    EXPECT_TRUE(encode_state(sample_state())
                    .starts_with(R"({"schema":1,"boot_id":"6f0c6a5e-1b7a-4e51-9d3f-0c2b8a1d4e77",)"
                                 R"("clean":true,"synced":[3,17,4294967295],"crc32c":)"));
    EXPECT_TRUE(encode_state(sample_state()).ends_with("}\n"));
}

TEST(StoreState, ReadsBack) {
    EXPECT_EQ(decode_state(encode_state(sample_state())), sample_state());
    StoreState empty;
    empty.boot_id = "x";
    EXPECT_EQ(decode_state(encode_state(empty)), empty);
}

TEST(StoreState, NamesSyncedSegments) {
    EXPECT_TRUE(sample_state().is_synced(domain::SegmentSeq{17}));
    EXPECT_FALSE(sample_state().is_synced(domain::SegmentSeq{16}));
}

TEST(StoreState, RefusesEveryFlippedBit) {
    const std::string good = encode_state(sample_state());
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1U << (bit % 8)));
        EXPECT_EQ(decode_state(bad), std::nullopt) << "bit " << bit;
    }
}

TEST(StoreState, RefusesEveryTruncation) {
    const std::string good = encode_state(sample_state());
    for (std::size_t size = 0; size < good.size(); ++size) {
        EXPECT_EQ(decode_state(good.substr(0, size)), std::nullopt) << size << " bytes";
    }
    EXPECT_EQ(decode_state(good + " "), std::nullopt);
}

TEST(StoreState, PlainTextIsOneTo64LettersDigitsAndDashes) {
    EXPECT_TRUE(is_plain_text("6f0c6a5e-1b7a-4e51-9d3f-0c2b8a1d4e77"));
    EXPECT_FALSE(is_plain_text(""));
    EXPECT_FALSE(is_plain_text("a\"b"));
    EXPECT_FALSE(is_plain_text("line\n"));
    EXPECT_FALSE(is_plain_text(std::string(65, 'a')));
}

TEST(StoreState, MissingOrDamagedIsNoStateAndUnreadableIsAnError) {
    test::FaultDevice device{1};
    EXPECT_EQ(load_state(device, "/node/state").value(), std::nullopt);
    ASSERT_TRUE(save_state(device, "/node/state", sample_state()).has_value());
    EXPECT_EQ(load_state(device, "/node/state").value(), sample_state());
    device.set_broken(test::FaultDevice::Operation::kRead, true);
    EXPECT_EQ(load_state(device, "/node/state").error().code, ErrorCode::kUnavailable);
    device.set_broken(test::FaultDevice::Operation::kRead, false);
    device.flip_bit("/node/state", 5, 0);
    EXPECT_EQ(load_state(device, "/node/state").value(), std::nullopt);
}

}  // namespace
}  // namespace stoker::sidecar

#include "sidecar/service/begin_frame.h"

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

Frame frame_of(const local::Begin& begin) {
    const auto bytes = local::encode_frame(begin, 7);
    const std::span all{bytes};
    return {
        local::decode_frame_header(all.first(local::kFrameHeaderBytes)).value(),
        {all.begin() + local::kFrameHeaderBytes, all.end()},
        {}};
}

TEST(BeginFrame, IsHeldToWhatTheJobAllows) {
    const ContractTerms job{"importance", {{"beta", 0.33}, {"lShare", 0.2}}};
    local::Begin begin;
    begin.contract = "importance";
    begin.parameters = {{"beta", 0.2}, {"accuracy", 0.9}};
    Frame frame = frame_of(begin);
    ASSERT_TRUE(limit_begin(frame, begin, job).has_value());
    const auto told = local::decode_payload(frame.header.type, frame.payload);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(std::get<local::Begin>(*told), begin);
    EXPECT_EQ(frame.header.payload_bytes, frame.payload.size());
    EXPECT_THAT(
        begin.parameters,
        testing::UnorderedElementsAre(
            local::Parameter{"accuracy", 0.9},
            local::Parameter{"beta", 0.2},
            local::Parameter{"lShare", 0.2}));
    begin.parameters = {{"beta", 0.5}};
    frame = frame_of(begin);
    EXPECT_EQ(limit_begin(frame, begin, job).error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(limit_begin(frame, begin, std::nullopt).has_value());
}

TEST(BeginFrame, PutsThePodsJobBeforeTheName) {
    local::Begin begin;
    begin.job = "another job";
    Frame frame = frame_of(begin);
    stamp_job(frame, begin, "uid-1");
    ASSERT_EQ(frame.header.payload_bytes, frame.payload.size());
    const auto read = local::decode_payload(frame.header.type, frame.payload).value();
    EXPECT_EQ(std::get<local::Begin>(read).job, "uid-1/another job");
    stamp_job(frame, std::get<local::Begin>(read), "");
    EXPECT_EQ(frame.header.payload_bytes, frame.payload.size());
}

}  // namespace
}  // namespace stoker::sidecar

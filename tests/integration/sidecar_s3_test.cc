// The real program with an S3 server that counts requests: origin traffic, odd keys, changed and
// failing objects.
#include <algorithm>
#include <map>
#include <numeric>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "tests/integration/sidecar_program_fixture.h"
#include "tests/support/fake_s3.h"

namespace stoker::test {
namespace {

constexpr std::size_t kObjects = 500;

class SidecarS3 : public SidecarProgramTest {
protected:
    SidecarS3() { s3.make_bucket("mnist"); }

    // Objects of equal size, so that half of the bytes is half of the samples.
    void put_equal_objects() {
        for (std::size_t i = 0; i < kObjects; ++i) {
            put(fmt::format("{}/{:04}.png", i % 10, i), fmt::format("{:0>512}", i));
        }
    }

    void put(const std::string& key, const std::string& bytes) {
        s3.put("mnist", "train/" + key, bytes);
        objects[key] = bytes;
    }

    std::unique_ptr<SidecarProcess> run(const std::string& name, const std::string& more = "") {
        return run_with_origin(
            fmt::format("{{uri: 's3://{}/train', endpoint: '{}'}}", bucket, s3.endpoint()),
            name,
            more);
    }

    // The error that refuses a Hello.
    [[nodiscard]] Error refusal(const std::string& name) const {
        const SystemClock clock;
        const TimePoint end = clock.now() + kPatience;
        while (clock.now() < end) {
            SampleClient client{socket_of(name)};
            const auto welcome = client.is_connected() ? client.hello("train") : local::Welcome{};
            if (!welcome) {
                return welcome.error();
            }
        }
        return {ErrorCode::kInternal, "not refused"};
    }

    // The bytes of the sample at the origin; ids follow the order of the keys.
    [[nodiscard]] const std::string& expected(std::uint64_t id) const {
        return std::next(objects.begin(), static_cast<std::ptrdiff_t>(id))->second;
    }

    void expect_sample(SampleClient& client, std::uint64_t id) const {
        const auto bytes = client.get(id);
        ASSERT_TRUE(bytes.has_value()) << "sample " << id << ": " << bytes.error().message;
        const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        ASSERT_EQ(text, expected(id)) << "sample " << id;
    }

    void run_epoch(
        SampleClient& client, const std::vector<std::uint64_t>& order, std::uint64_t epoch) const {
        ASSERT_TRUE(client.plan(epoch, order).has_value());
        for (const std::uint64_t id : order) {
            expect_sample(client, id);
            client.consumed(epoch, {id});
        }
    }

    [[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t seed) const {
        std::vector<std::uint64_t> ids(objects.size());
        std::iota(ids.begin(), ids.end(), 0U);
        Prng prng{seed};
        std::shuffle(ids.begin(), ids.end(), prng);
        return ids;
    }

    FakeS3 s3;
    std::string bucket = "mnist";
    std::map<std::string, std::string> objects;  // in the order of the ids
};

TEST_F(SidecarS3, HalfTheBytesGrantedCostsHalfTheGetsInEveryLaterEpoch) {
    put_equal_objects();
    // 512 bytes and their header make a record of 576.
    const auto sidecar =
        run("one", fmt::format("  grant: {}\n  window: 1Mi\n", 576 * kObjects / 2));
    SampleClient client = connect("one", 1);
    run_epoch(client, shuffled(1), 1);
    for (std::uint64_t epoch = 2; epoch <= 4; ++epoch) {
        s3.clear_requests();
        run_epoch(client, shuffled(epoch), epoch);
        EXPECT_EQ(s3.request_count("get"), kObjects / 2);
    }
}

TEST_F(SidecarS3, ServesOddKeys) {
    for (const char* key :
         {"a b.png",
          "ü/ß €.png",
          "100%.png",
          "1+1=2.png",
          "dots/../up.png",
          "q?x=1&y",
          "a//b",
          "~"}) {
        put(key, std::string("bytes of ") + key);
    }
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    for (std::uint64_t id = 0; id < objects.size(); ++id) {
        expect_sample(client, id);
    }
}

TEST_F(SidecarS3, AChangedObjectIsAnErrorThatNamesIt) {
    put("a.png", "as listed");
    put("b.png", "as listed too");
    const auto sidecar = run("one");
    SampleClient client = connect("one");
    s3.put("mnist", "train/a.png", "other bytes");
    const auto fetched = client.fetch({0, 1});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(
        fetched->statuses,
        (std::vector{local::FetchStatus::kOriginError, local::FetchStatus::kReady}));
    EXPECT_NE(fetched->message.find("a.png"), std::string::npos) << fetched->message;
}

TEST_F(SidecarS3, LeavesAHugeObjectWithoutRoomToTheClient) {
    put("huge.bin", std::string(std::size_t{3} << 20U, 'x'));
    put("small.bin", "small");
    const auto sidecar = run("one", "  memory: 1Mi\n  window: 2Mi\n  grant: 2Mi\n");
    SampleClient client = connect("one");
    const auto fetched = client.fetch({0, 1});
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(
        fetched->statuses,
        (std::vector{local::FetchStatus::kReadAtOrigin, local::FetchStatus::kReady}));
    EXPECT_EQ(s3.request_count("get"), 1U);
}

TEST_F(SidecarS3, ReportsAMissingBucketInTheServersWords) {
    bucket = "nowhere";
    const auto sidecar = run("one");
    const Error error = refusal("one");
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_NE(error.message.find("NoSuchBucket"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("nowhere"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace stoker::test

#include <atomic>
#include <cstdlib>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "common/base/guarded.h"
#include "sidecar/origin/s3_origin.h"
#include "tests/support/fake_s3.h"
#include "tests/support/list_objects.h"
#include "tests/support/origin_calls.h"
#include "tests/support/poll.h"

namespace {

constexpr std::size_t kLargeBytes = 16 * 1024 * 1024;
std::atomic<std::size_t> live_large_blocks = 0;

void count_block(void* memory, std::size_t by) {
    if (malloc_usable_size(memory) >= kLargeBytes) {
        live_large_blocks += by;
    }
}

}  // namespace

// Counts this program's heap allocations of 16 MiB or more.
void* operator new(std::size_t size) {
    void* memory = std::malloc(size);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    count_block(memory, 1);
    return memory;
}

void operator delete(void* memory) noexcept {
    count_block(memory, std::size_t{0} - 1);
    std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
    operator delete(memory);
}

namespace stoker::sidecar {
namespace {

using namespace std::chrono_literals;
using test::fetch_now;
using test::start_fetch;
using test::text_of;
using testing::HasSubstr;

const SystemClock kClock;

class S3OriginFaults : public testing::Test {
protected:
    explicit S3OriginFaults(test::FakeS3Options server = {})
        : server_(std::move(server)) {
        options_.retry = {.attempts_max = 4, .backoff_first = 1ms, .backoff_max = 4ms};
        server_.make_bucket("b");
        wanted_ = {"cat/1.jpg", server_.put("b", "cat/1.jpg", kBytes), kBytes.size()};
    }

    std::unique_ptr<Origin> open(const std::string& uri = "s3://b") {
        options_.endpoint = server_.endpoint();
        auto origin = make_origin(
            uri, options_, [](const char*) { return nullptr; }, kClock, 1);
        EXPECT_TRUE(origin.has_value()) << origin.error().message;
        return *std::move(origin);
    }

    // After the fault the same object arrives undamaged, in `requests` requests.
    void expect_recovers(const test::FakeS3Fault& fault, std::uint32_t requests) {
        server_.add_fault(fault);
        const auto bytes = fetch_now(*open(), wanted_);
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        EXPECT_EQ(text_of(*bytes), kBytes);
        EXPECT_EQ(bytes->requests, requests);
        server_.clear_faults();
    }

    // The fault makes the fetch fail permanently, after `requests` requests.
    Error expect_fails(const test::FakeS3Fault& fault, ErrorCode code, std::size_t requests) {
        server_.clear_requests();
        server_.add_fault(fault);
        const auto bytes = fetch_now(*open(), wanted_);
        server_.clear_faults();
        if (bytes.has_value()) {
            ADD_FAILURE() << "the fetch succeeded";
            return {};
        }
        EXPECT_EQ(bytes.error().code, code) << bytes.error().message;
        EXPECT_EQ(server_.request_count("get"), requests);
        EXPECT_THAT(bytes.error().message, HasSubstr("'cat/1.jpg' of s3://b/ at http://"));
        return bytes.error();
    }

    const std::string kBytes = std::string(100'000, 'x') + "end";
    test::FakeS3 server_;
    OriginOptions options_;
    OriginFetch wanted_;
};

TEST_F(S3OriginFaults, RetriesTransientFaults) {
    expect_recovers({.times = 3, .status = 503}, 4);
    expect_recovers({.times = 2, .status = 500}, 3);
    expect_recovers({.status = 429, .code = "TooManyRequests"}, 2);
    expect_recovers({.status = 400, .code = "RequestTimeout"}, 2);
    expect_recovers({.cut_after = 0}, 2);
    expect_recovers({.cut_after = 50'000}, 2);
    expect_recovers({.cut_after = 50'000, .reset = true}, 2);
    expect_recovers({.reset = true}, 2);
}

TEST_F(S3OriginFaults, GivesUpAfterTheLastAttemptQuotingTheOrigin) {
    const Error error = expect_fails({.times = -1, .status = 503}, ErrorCode::kUnavailable, 4);
    EXPECT_THAT(
        error.message,
        HasSubstr("503 SlowDown: Please reduce your request rate. (after 4 attempts)"));
    EXPECT_THAT(
        expect_fails({.times = -1, .cut_after = 10}, ErrorCode::kUnavailable, 4).message,
        HasSubstr("(after 4 attempts)"));
}

TEST_F(S3OriginFaults, DoesNotRetryPermanentFaults) {
    EXPECT_THAT(
        expect_fails({.times = -1, .status = 403}, ErrorCode::kForbidden, 1).message,
        HasSubstr("403 AccessDenied: Access Denied"));
    EXPECT_THAT(
        expect_fails({.times = -1, .status = 404}, ErrorCode::kNotFound, 1).message,
        HasSubstr("404 NoSuchKey: The specified key does not exist."));
    expect_fails({.times = -1, .status = 400}, ErrorCode::kInvalidArgument, 1);
}

TEST_F(S3OriginFaults, MissingBucketsAndVanishedObjectsAreNotFound) {
    server_.remove("b", "cat/1.jpg");
    EXPECT_THAT(expect_fails({}, ErrorCode::kNotFound, 1).message, HasSubstr("404 NoSuchKey"));
    const auto listed = test::list_objects(*open("s3://nowhere/x"));
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(listed.error().message, HasSubstr("listing s3://nowhere/x/ at http://127.0.0.1:"));
    EXPECT_THAT(
        listed.error().message, HasSubstr("404 NoSuchBucket: The specified bucket does not exist"));
}

TEST_F(S3OriginFaults, AnotherObjectThanListedIsAConflict) {
    expect_fails({.etag = "somebody else's"}, ErrorCode::kConflict, 1);
    expect_fails({.length_change = 1}, ErrorCode::kConflict, 1);
    expect_fails({.length_change = -1}, ErrorCode::kConflict, 1);
    server_.put("b", "cat/1.jpg", "overwritten");
    EXPECT_THAT(
        expect_fails({}, ErrorCode::kConflict, 1).message, HasSubstr("412 PreconditionFailed"));
    EXPECT_THAT(
        expect_fails({.ignore_if_match = true}, ErrorCode::kConflict, 1).message,
        HasSubstr("changed at the origin: ETag"));
}

TEST_F(S3OriginFaults, ObeysRetryAfter) {
    server_.add_fault({.status = 503, .retry_after = "1"});
    const auto started = std::chrono::steady_clock::now();
    const auto bytes = fetch_now(*open(), wanted_);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_GE(std::chrono::steady_clock::now() - started, 1s);
}

TEST_F(S3OriginFaults, RetriesAStalledServer) {
    options_.stall_timeout = 200ms;
    expect_recovers({.delay = 1s}, 2);
    expect_recovers({.delay = 1s, .cut_after = 10}, 2);
}

TEST_F(S3OriginFaults, AnUnreachableServerIsUnavailable) {
    options_.endpoint = "http://127.0.0.1:1";  // no listener on tcpmux
    const auto origin = make_origin(
        "s3://b", options_, [](const char*) { return nullptr; }, kClock, 1);
    ASSERT_TRUE(origin.has_value());
    const auto listed = test::list_objects(**origin);
    ASSERT_FALSE(listed.has_value());
    EXPECT_EQ(listed.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(listed.error().message, HasSubstr("Connection refused"));
    const auto bytes = fetch_now(**origin, wanted_);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(bytes.error().message, HasSubstr("Connection refused"));
    EXPECT_THAT(bytes.error().message, HasSubstr("(after 4 attempts)"));
}

class S3OriginEncrypted : public S3OriginFaults {
protected:
    S3OriginEncrypted()
        : S3OriginFaults({.encryption = "aws:kms"}) {}
};

TEST_F(S3OriginEncrypted, TreatsEtagsAsOpaque) {
    expect_recovers({}, 1);
    wanted_.etag = "0123456789abcdef0123456789abcdef";
    expect_fails({}, ErrorCode::kConflict, 1);
}

class S3OriginChecksums : public S3OriginFaults {
protected:
    S3OriginChecksums()
        : S3OriginFaults({.send_crc32c = true}) {}
};

TEST_F(S3OriginChecksums, AStoredChecksumCatchesWrongBytes) {
    expect_recovers({}, 1);
    expect_recovers({.corrupt = true}, 2);
    EXPECT_THAT(
        expect_fails({.times = -1, .corrupt = true}, ErrorCode::kCorruption, 4).message,
        HasSubstr("do not match the checksum stored at the origin"));
}

// A credential source that must first ask a service.
class LateCredentials final : public CredentialSource {
public:
    struct State {
        std::optional<Answer> answer;
        std::vector<std::function<void()>> waiting;
    };

    explicit LateCredentials(Guarded<State>& state)
        : state_(state) {}

    ~LateCredentials() override { answer(state_, fail(ErrorCode::kCancelled, "closing")); }

    std::optional<Answer> try_get(std::function<void()> ready) override {
        auto state = state_.lock();
        if (!state->answer) {
            state->waiting.push_back(std::move(ready));
        }
        return state->answer;
    }

    static void answer(Guarded<State>& shared, const Answer& answer) {
        std::vector<std::function<void()>> waiting;
        {
            auto state = shared.lock();
            state->answer = answer;
            waiting = std::exchange(state->waiting, {});
        }
        for (const auto& ready : waiting) {
            ready();
        }
    }

private:
    Guarded<State>& state_;
};

class S3OriginCredentials : public S3OriginFaults {
protected:
    std::unique_ptr<Origin> open_late() {
        const auto location = parse_s3_location("s3://b", server_.endpoint(), "r", std::nullopt);
        return make_s3_origin(
                   *location, options_, std::make_unique<LateCredentials>(state_), kClock, 1)
            .value();
    }

    bool are_waiting(std::size_t count) {
        return test::eventually([&] { return state_.lock()->waiting.size() == count; });
    }

    Guarded<LateCredentials::State> state_;
};

TEST_F(S3OriginCredentials, FetchesWaitUntilTheCredentialsAreKnown) {
    const auto origin = open_late();
    auto first = start_fetch(*origin, wanted_);
    auto second = start_fetch(*origin, wanted_);
    ASSERT_TRUE(are_waiting(2)) << "the first does not block the second";
    EXPECT_EQ(server_.request_count("get"), 0U);
    LateCredentials::answer(state_, std::nullopt);
    EXPECT_TRUE(first.get().has_value());
    EXPECT_TRUE(second.get().has_value());
}

TEST_F(S3OriginCredentials, GivesUpWithoutThem) {
    const auto origin = open_late();
    auto fetch = start_fetch(*origin, wanted_);
    ASSERT_TRUE(are_waiting(1));
    LateCredentials::answer(state_, fail(ErrorCode::kUnavailable, "no token service"));
    const auto bytes = fetch.get();
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(bytes.error().message, HasSubstr("no token service (after 4 attempts)"));
}

TEST_F(S3OriginCredentials, DestructionEndsFetchesThatWaitForThem) {
    auto origin = open_late();
    auto fetch = start_fetch(*origin, wanted_);
    ASSERT_TRUE(are_waiting(1));
    origin.reset();
    EXPECT_EQ(fetch.get().error().code, ErrorCode::kCancelled);
}

class S3OriginRanges : public S3OriginFaults {
protected:
    S3OriginRanges() {
        large_ = {
            "large",
            server_.put("b", "large", std::string(20 * 1024 * 1024, 'y')),
            20 * 1024 * 1024};
    }

    OriginFetch large_;
};

TEST_F(S3OriginRanges, RepeatsOnlyTheBrokenRange) {
    server_.add_fault({.key = "large", .cut_after = 1000});
    const auto bytes = fetch_now(*open(), large_);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    EXPECT_EQ(bytes->requests, 4U) << "three ranges and one of them again";
    EXPECT_EQ(bytes->attempts, 2U) << "of the broken range";
    EXPECT_EQ(text_of(*bytes), std::string(20 * 1024 * 1024, 'y'));
}

TEST_F(S3OriginRanges, OneFailedRangeFailsItsObjectOnceAndTheOriginContinues) {
    const auto origin = open();
    server_.add_fault({.key = "large", .skip = 1, .status = 403});
    server_.add_fault({.key = "large", .times = -1, .bytes_per_second = 1'000'000});
    const auto bytes = fetch_now(*origin, large_);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kForbidden);
    EXPECT_TRUE(fetch_now(*origin, wanted_).has_value());
}

TEST_F(S3OriginRanges, FreesTheBytesOfAFailedObjectWhileARangeWaitsForItsRetry) {
    const auto origin = open();
    server_.add_fault({.key = "large", .status = 503, .retry_after = "60"});
    server_.add_fault({.key = "large", .status = 403, .delay = 200ms});
    const std::size_t before = live_large_blocks;
    const auto bytes = fetch_now(*origin, large_);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kForbidden);
    EXPECT_TRUE(test::eventually([&] { return live_large_blocks <= before; }, 10s));
}

TEST_F(S3OriginRanges, AnObjectThatChangesBetweenRangesIsAConflict) {
    server_.add_fault({.key = "large", .skip = 1, .etag = "new"});
    const auto bytes = fetch_now(*open(), large_);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kConflict);
}

TEST_F(S3OriginRanges, RefusesAServerWithoutRanges) {
    server_.add_fault({.key = "large", .times = -1, .ignore_range = true});
    const auto bytes = fetch_now(*open(), large_);
    ASSERT_FALSE(bytes.has_value());
    EXPECT_THAT(bytes.error().message, HasSubstr("the origin answers 200 where 206 was due"));
}

TEST_F(S3OriginFaults, CountsRequestsBytesAndFailures) {
    metrics::Registry registry;
    OriginMetrics metrics{registry};
    options_.metrics = &metrics;
    server_.add_fault({.operation = "list", .status = 500});
    server_.add_fault({.operation = "get", .times = 2, .status = 503});
    const auto origin = open();
    ASSERT_TRUE(test::list_objects(*origin).has_value());
    ASSERT_TRUE(fetch_now(*origin, wanted_).has_value());
    ASSERT_FALSE(fetch_now(*origin, {"gone", "e", 1}).has_value());
    const std::string text = registry.expose();
    for (const char* line : {
             "stoker_origin_requests_total{operation=\"list\",outcome=\"500\"} 1\n",
             "stoker_origin_requests_total{operation=\"list\",outcome=\"200\"} 1\n",
             "stoker_origin_requests_total{operation=\"get\",outcome=\"503\"} 2\n",
             "stoker_origin_requests_total{operation=\"get\",outcome=\"200\"} 1\n",
             "stoker_origin_requests_total{operation=\"get\",outcome=\"404\"} 1\n",
             "stoker_origin_retries_total 3\n",
             "stoker_origin_received_bytes_total 100003\n",
             "stoker_origin_failed_objects_total{code=\"not_found\"} 1\n",
             "stoker_origin_failed_objects_total{code=\"forbidden\"} 0\n",
             "stoker_origin_failed_objects_total{code=\"unavailable\"} 0\n",
             "stoker_origin_first_byte_seconds_count 1\n",
         }) {
        EXPECT_THAT(text, HasSubstr(line));
    }
}

}  // namespace
}  // namespace stoker::sidecar

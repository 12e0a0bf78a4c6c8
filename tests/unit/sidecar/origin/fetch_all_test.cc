#include "sidecar/origin/fetch_all.h"

#include <future>
#include <mutex>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using Done = std::function<void(Result<OriginBytes>)>;

// Answers a fetch only when the test says so.
class HoldingOrigin final : public Origin {
public:
    [[nodiscard]] std::string describe() const override { return "held"; }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>&, std::stop_token) override {
        return domain::Listing{};
    }

    void fetch(OriginFetch, Done done) override {
        const std::lock_guard lock{mutex_};
        held_.push_back(std::move(done));
        if (held_.size() == 3) {
            all_asked.set_value();
        }
    }

    void answer(std::size_t i) {
        const std::lock_guard lock{mutex_};
        held_.at(i)(OriginBytes{std::vector<std::byte>(i + 1)});
    }

    [[nodiscard]] std::size_t asked() {
        const std::lock_guard lock{mutex_};
        return held_.size();
    }

    std::promise<void> all_asked;  // three fetches

private:
    std::mutex mutex_;
    std::vector<Done> held_;
};

class FetchAll : public testing::Test {
protected:
    std::future<std::vector<Result<OriginBytes>>> start() {
        return std::async(std::launch::async, [this] {
            return fetch_all(
                origin_, {{"a", "e", 1}, {"b", "e", 2}, {"c", "e", 3}}, stop_.get_token());
        });
    }

    HoldingOrigin origin_;
    std::stop_source stop_;
};

TEST_F(FetchAll, ResultsHaveTheOrderOfTheRequests) {
    auto results = start();
    origin_.all_asked.get_future().wait();
    for (const std::size_t i : {2U, 0U, 1U}) {
        origin_.answer(i);
    }
    const auto fetched = results.get();
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(fetched[i].value().payload.size(), i + 1);
    }
}

TEST_F(FetchAll, StopEndsTheWaitAndLateAnswersAreDropped) {
    auto results = start();
    origin_.all_asked.get_future().wait();
    origin_.answer(1);
    stop_.request_stop();
    const auto fetched = results.get();
    ASSERT_EQ(fetched.size(), 3U);
    EXPECT_EQ(fetched[0].error().code, ErrorCode::kCancelled);
    EXPECT_TRUE(fetched[1].has_value());
    EXPECT_EQ(fetched[2].error().code, ErrorCode::kCancelled);
    origin_.answer(0);
    origin_.answer(2);
    EXPECT_EQ(fetched[0].error().code, ErrorCode::kCancelled);
}

TEST_F(FetchAll, StoppedBeforeItBeginsFetchesNothing) {
    stop_.request_stop();
    EXPECT_EQ(start().get().front().error().code, ErrorCode::kCancelled);
    EXPECT_EQ(origin_.asked(), 0U);
}

TEST_F(FetchAll, NoRequestsGiveNoResults) {
    EXPECT_TRUE(fetch_all(origin_, {}, {}).empty());
}

}  // namespace
}  // namespace stoker::sidecar

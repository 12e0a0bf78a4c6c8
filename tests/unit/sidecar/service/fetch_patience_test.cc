#include "sidecar/service/fetch_patience.h"

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint kStart{seconds{100}};

TEST(FetchPatience, RetriesAfterDoublingDelaysAndGivesUp) {
    FetchPatience patience;
    TimePoint now = kStart;
    int asked = 0;
    while (patience.wait(5, now)) {
        now = patience.next_due().value();
        EXPECT_THAT(patience.take_due(now), ElementsAre(5));
        ++asked;
        ASSERT_LT(asked, 100);
    }
    EXPECT_EQ(now, kStart + FetchPatience::kPatience);
    EXPECT_EQ(asked, 5);
}

TEST(FetchPatience, NothingIsDueBeforeItsTime) {
    FetchPatience patience;
    ASSERT_TRUE(patience.wait(5, kStart));
    EXPECT_THAT(patience.take_due(kStart), IsEmpty());
}

TEST(FetchPatience, AnAnswerEndsTheRetries) {
    FetchPatience patience;
    ASSERT_TRUE(patience.wait(5, kStart));
    patience.forget(5);
    EXPECT_EQ(patience.next_due(), std::nullopt);
}

TEST(FetchPatience, KeepsTheRemainingPatienceForTheNextLeader) {
    FetchPatience patience;
    ASSERT_TRUE(patience.wait(5, kStart));
    patience.ask_all();
    EXPECT_EQ(patience.next_due(), std::nullopt);
    EXPECT_FALSE(patience.wait(5, kStart + FetchPatience::kPatience));
}

}  // namespace
}  // namespace stoker::sidecar

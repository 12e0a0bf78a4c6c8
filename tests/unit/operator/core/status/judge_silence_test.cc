#include "operator/core/status/judge_silence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/time_format.h"
#include "tests/unit/operator/core/make_warmup.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JudgeSilence : public testing::Test {
protected:
    JudgeSilence() {
        view.warmup = make_warmup();
        view.dataset = make_dataset();
        view.listening_since = moment(0).steady;
    }

    std::vector<WarmupNodeStatus>& nodes() { return view.warmup.status.nodes; }

    Condition at(std::int64_t second) { return judge_silence(nodes(), view, moment(second)); }

    WarmupView view;
};

TEST_F(JudgeSilence, SaysWhichNodeSinceWhenAndWhatToDo) {
    EXPECT_EQ(at(100).reason, "AllNodes");
    EXPECT_EQ(at(100).status, ConditionStatus::kTrue);
    nodes()[1].silent_since = wall(100);
    EXPECT_EQ(at(159).reason, "Starting");
    EXPECT_EQ(at(159).status, ConditionStatus::kUnknown);
    const Condition silent = at(160);
    EXPECT_EQ(silent.status, ConditionStatus::kFalse);
    EXPECT_EQ(silent.reason, "NodesSilent");
    EXPECT_THAT(silent.message, HasSubstr("from n2 (since " + format_time(wall(100)) + ")."));
    EXPECT_THAT(
        silent.message,
        HasSubstr("kubectl -n team get pods -o wide -l stoker.dev/filler=uid-imagenet"));
}

TEST_F(JudgeSilence, CountsFromTheTimeAtWhichTheOperatorListens) {
    nodes()[1].silent_since = wall(100);
    view.listening_since = moment(1000).steady;
    EXPECT_EQ(silence_of(nodes()[1], view, moment(1010)), std::chrono::seconds{10});
    EXPECT_EQ(at(1010).reason, "Starting");
    view.listening_since.reset();
    EXPECT_EQ(silence_of(nodes()[1], view, moment(1010)), Duration{});
}

TEST_F(JudgeSilence, TellsFiveNodes) {
    nodes().resize(7);
    for (std::size_t i = 0; i < nodes().size(); ++i) {
        nodes()[i].node = "node-" + std::to_string(i);
        nodes()[i].silent_since = wall(100);
    }
    EXPECT_THAT(at(200).message, HasSubstr("node-4"));
    EXPECT_THAT(at(200).message, Not(HasSubstr("node-5")));
    EXPECT_THAT(at(200).message, HasSubstr(" and 2 more."));
}

}  // namespace
}  // namespace stoker::control

#include "sidecar/control/link_session.h"

#include <vector>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LinkSessionTest : public ::testing::Test {
protected:
    LinkSession make() {
        DatasetConfig dataset;
        dataset.name = "train";
        dataset.uid = "uid-1";
        LinkCallbacks callbacks;
        callbacks.report = [this] {
            LinkReport report;
            control::DatasetReport& told = report.datasets.emplace_back();
            told.name = "train";
            told.dataset_uid = "uid-1";
            told.sketches.push_back({"job", 3, {0.5F}, 1});
            report.awaits_pin = awaits_pin_;
            return report;
        };
        callbacks.grant = [this](const control::Grant& grant) { granted_.push_back(grant); };
        return {{"team-a", "pod", "node", "job", "uid", "", 2}, {dataset}, callbacks, {}};
    }

    bool awaits_pin_ = false;
    std::vector<control::Grant> granted_;
};

TEST_F(LinkSessionTest, CountsReportsOverAllStreams) {
    LinkSession session = make();
    session.begin();
    EXPECT_EQ(session.next_report().message.report().sequence(), 1U);
    session.on_end(false);
    session.begin();
    EXPECT_EQ(session.next_report().message.report().sequence(), 2U);
}

TEST_F(LinkSessionTest, RepeatsSketchesOnEachStream) {
    LinkSession session = make();
    const auto masses = [&] {
        return session.next_report().message.report().datasets(0).sketches(0).masses_size();
    };
    session.begin();
    EXPECT_EQ(masses(), 1);
    EXPECT_EQ(masses(), 0);
    session.begin();
    EXPECT_EQ(masses(), 1);
}

TEST_F(LinkSessionTest, ReportsSoonerWhileItAwaitsAPin) {
    LinkSession session = make();
    EXPECT_EQ(session.next_report().pause, seconds{2});
    awaits_pin_ = true;
    EXPECT_EQ(session.next_report().pause, milliseconds{500});
}

TEST_F(LinkSessionTest, IsAttachedFromTheFirstMessageToTheEnd) {
    LinkSession session = make();
    session.begin();
    EXPECT_FALSE(session.is_attached());
    control::v1::OperatorMessage message;
    message.add_grants()->set_dataset_uid("uid-1");
    EXPECT_TRUE(session.on_message(message));
    EXPECT_FALSE(session.on_message(message));
    EXPECT_TRUE(session.is_attached());
    EXPECT_EQ(granted_.size(), 2U);
    session.on_end(false);
    EXPECT_FALSE(session.is_attached());
}

TEST_F(LinkSessionTest, PausesLongerAfterEachFailureAndLittleAfterAnAttachedStream) {
    LinkSession session = make();
    for (int i = 0; i < 60; ++i) {
        session.on_end(false);
    }
    EXPECT_GE(session.on_end(false), seconds{7});
    EXPECT_LE(session.on_end(false), milliseconds{22500});
    EXPECT_LE(session.on_end(true), milliseconds{7500});
    session.on_message({});
    EXPECT_LE(session.on_end(false), milliseconds{300});
}

}  // namespace
}  // namespace stoker::sidecar

#include "sidecar/control/link_session.h"

#include <vector>

#include <gtest/gtest.h>

#include "wire/control/codec/control_codec.h"

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
    EXPECT_TRUE(session.on_message(message, TimePoint{}));
    EXPECT_FALSE(session.on_message(message, TimePoint{}));
    EXPECT_TRUE(session.is_attached());
    EXPECT_EQ(granted_.size(), 2U);
    session.on_end(false);
    EXPECT_FALSE(session.is_attached());
}

TEST_F(LinkSessionTest, PausesLongerAfterEachFailureButOnlyBrieflyAfterAnAttachedStream) {
    LinkSession session = make();
    for (int i = 0; i < 60; ++i) {
        session.on_end(false);
    }
    EXPECT_GE(session.on_end(false), seconds{7});
    EXPECT_LE(session.on_end(false), milliseconds{22500});
    EXPECT_LE(session.on_end(true), milliseconds{7500});
    session.on_message({}, TimePoint{});
    EXPECT_LE(session.on_end(false), milliseconds{300});
}

class LinkPeersTest : public LinkSessionTest {
protected:
    LinkSession make() {
        DatasetConfig dataset;
        dataset.name = "train";
        dataset.uid = "uid-1";
        LinkCallbacks callbacks;
        callbacks.report = [this] {
            LinkReport report;
            control::DatasetReport& told = report.datasets.emplace_back();
            told.dataset_uid = "uid-1";
            told.reads_differ = differs_at_ != 0;
            told.peer_group_version = differs_at_;
            return report;
        };
        callbacks.peers = [this](const control::PeerGroup& group) {
            told_.push_back("group " + std::to_string(group.version));
        };
        callbacks.pin = [this](const control::RevisionPin&) { told_.push_back("pin"); };
        callbacks.peer_request = [] { return std::string{"request"}; };
        callbacks.peer_certificate = [this](const control::PeerCertificate& certificate) {
            told_.push_back(certificate.chain);
        };
        return {{"team-a", "pod", "node", "job", "uid", "", 2}, {dataset}, callbacks, {}};
    }

    static control::v1::OperatorMessage signs() {
        control::Orders orders;
        orders.signs_peers = true;
        return control::encode(orders);
    }

    static control::v1::OperatorMessage certificate(std::uint32_t renew_seconds) {
        control::Orders orders;
        orders.peer_certificate = control::PeerCertificate{"chain", "trust", renew_seconds};
        return control::encode(orders);
    }

    static TimePoint at(int second) { return TimePoint{seconds{second}}; }

    static bool asks(LinkSession& session, int second) {
        return session.next_message(at(second)).message.has_peer_request();
    }

    std::uint64_t differs_at_ = 0;  // version of the group whose reads differ; 0: they do not
    std::vector<std::string> told_;
};

TEST_F(LinkPeersTest, TellsOtherReadsOnlyOfTheNewestGroup) {
    LinkSession session = make();
    const auto tells = [&] {
        return session.next_report().message.report().datasets(0).reads_differ();
    };
    const auto take = [&](std::uint64_t version) {
        control::Orders orders;
        orders.peers = {{"uid-1", version, {}}};
        session.on_message(control::encode(orders), TimePoint{});
    };
    session.begin();
    take(7);
    EXPECT_FALSE(tells());
    differs_at_ = 7;
    EXPECT_TRUE(tells());
    take(8);
    EXPECT_FALSE(tells()) << "the leader has not seen group 8 yet";
    differs_at_ = 8;
    EXPECT_TRUE(tells());
}

TEST_F(LinkPeersTest, AsksForACertificateOnceTheOperatorSigns) {
    LinkSession session = make();
    session.begin();
    EXPECT_FALSE(asks(session, 0)) << "an older operator ends the stream at a request";
    session.on_message(signs(), at(1));
    const LinkSession::Outgoing request = session.next_message(at(1));
    EXPECT_EQ(request.message.peer_request().request_pem(), "request");
    EXPECT_EQ(request.pause, Duration{}) << "the report follows at once";
    EXPECT_FALSE(asks(session, 1));
}

TEST_F(LinkPeersTest, AsksAgainWithoutAnAnswerAndOnANewStream) {
    LinkSession session = make();
    session.begin();
    session.on_message(signs(), at(0));
    EXPECT_TRUE(asks(session, 0));
    EXPECT_FALSE(asks(session, 69));
    EXPECT_TRUE(asks(session, 70));
    session.begin();
    EXPECT_FALSE(asks(session, 71)) << "this operator has not said that it signs";
    session.on_message(signs(), at(72));
    EXPECT_TRUE(asks(session, 72));
}

TEST_F(LinkPeersTest, RenewsWhenTheOperatorSays) {
    LinkSession session = make();
    session.begin();
    session.on_message(signs(), at(0));
    EXPECT_TRUE(asks(session, 0));
    session.on_message(certificate(600), at(1));
    EXPECT_EQ(told_, std::vector<std::string>{"chain"});
    session.begin();
    session.on_message(signs(), at(2));
    EXPECT_FALSE(asks(session, 600)) << "it has one";
    EXPECT_TRUE(asks(session, 601));
}

TEST_F(LinkPeersTest, PassesGroupsOnBeforePinsAndDropsOlderOnes) {
    LinkSession session = make();
    session.begin();
    control::Orders orders;
    orders.pins = {{"uid-1", domain::RevisionId{7}, {}}};
    orders.peers = {{"uid-1", 5, {}}};
    session.on_message(control::encode(orders), at(0));
    session.on_message(control::encode(orders), at(0));
    orders.pins.clear();
    orders.peers[0].version = 4;
    session.on_message(control::encode(orders), at(0));
    EXPECT_EQ(told_, (std::vector<std::string>{"group 5", "pin", "pin"}));
}

TEST_F(LinkPeersTest, ReportsTheVersionOfItsGroup) {
    LinkSession session = make();
    const auto version = [&] {
        return session.next_report().message.report().datasets(0).peer_group_version();
    };
    EXPECT_EQ(version(), 0U);
    control::Orders orders;
    orders.peers = {{"uid-1", 5, {}}};
    session.on_message(control::encode(orders), at(0));
    EXPECT_EQ(version(), 5U);
}

}  // namespace
}  // namespace stoker::sidecar

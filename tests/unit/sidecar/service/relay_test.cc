// Tests a relay between one session and leaders of different versions (feature sets).
#include "sidecar/service/relay.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "sidecar/service/unix_listener.h"
#include "tests/support/sample_client.h"
#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kOld =
    local::kFeatureContracts | local::kFeatureProbe | local::kFeatureCounts;

std::uint64_t ids_in(const UniqueFd& memfd) {
    struct stat info {};

    return ::fstat(memfd.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) / 8 : 0;
}

// Answers each Hello with these features and keeps the plans that it receives. Can be told to read
// nothing after the Hello.
class Leader {
public:
    Leader(
        EventLoop& loop,
        const std::string& path,
        std::uint32_t features,
        std::uint64_t samples = 10,
        bool reads = true)
        : listener_(UnixListener::listen(
                        loop,
                        path,
                        0600,
                        [this, &loop](UniqueFd socket, auto&&) {
                            socket_ = std::make_unique<FrameSocket>(
                                loop,
                                std::move(socket),
                                [this](Frame frame) { on_frame(std::move(frame)); },
                                [](const std::string&) {});
                        })
                        .value()),
          features_(features),
          samples_(samples),
          reads_(reads) {}

    void read_on() { socket_->set_paused(false); }

    std::vector<Frame> plans;
    std::uint64_t consumed = 0;
    std::vector<local::Losses> losses;
    local::Fetched fetched;  // the answer to each Fetch
    int fetches = 0;

private:
    void on_frame(Frame frame) {
        if (std::holds_alternative<local::Hello>(frame.message)) {
            socket_->send(
                local::Welcome{local::kProtocolVersion, 1, samples_, "/n", features_},
                frame.request_id);
            socket_->set_paused(!reads_);
        } else if (std::holds_alternative<local::Plan>(frame.message)) {
            plans.push_back(std::move(frame));
        } else if (const auto* read = std::get_if<local::Consumed>(&frame.message)) {
            consumed += read->samples.size();
        } else if (std::holds_alternative<local::Fetch>(frame.message)) {
            ++fetches;
            socket_->send(fetched, frame.request_id);
        } else if (auto* report = std::get_if<local::Losses>(&frame.message)) {
            losses.push_back(std::move(*report));
        }
    }

    std::unique_ptr<UnixListener> listener_;
    std::unique_ptr<FrameSocket> socket_;
    std::uint32_t features_;
    std::uint64_t samples_;
    bool reads_;
};

class Silence final : public ReadingListener {
public:
    void on_drawn(const Session& /*session*/, const local::Drawn& /*drawn*/) override {}

    void on_counted(const local::Counted& /*counted*/) override {}
};

class RelayTest : public testing::Test {
protected:
    RelayTest() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        client_ = UniqueFd{ends[0]};
        session_.emplace(
            loop_,
            ConnectionId{1},
            UniqueFd{ends[1]},
            [this](Frame frame) { relay_->on_request(std::move(frame)); },
            [](const std::string&) {});
        relay_.emplace(
            loop_,
            *session_,
            "/mine",
            silence_,
            Relay::Callbacks{
                [this] { lost_ = true; },
                [this] { relay_->admit(); },
                [this] { return must_wait_; }});
    }

    // Starts a leader in place of the previous one.
    Leader& lead(std::uint32_t features, std::uint64_t samples = 10, bool reads = true) {
        leader_.reset();
        leader_.emplace(loop_, path_, features, samples, reads);
        relay_->connect({connect_unix(path_).value(), {}});
        return *leader_;
    }

    void end_of_leader() {
        leader_.reset();
        until([this] { return lost_; });
    }

    // Types of the frames sent to the client since the last call.
    std::vector<local::FrameType> received() {
        std::vector<std::byte> bytes(1U << 16U);
        const auto count = ::recv(client_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        std::vector<local::FrameType> types;
        for (std::span rest{bytes}; rest.size() >= local::kFrameHeaderBytes;) {
            const auto header =
                local::decode_frame_header(rest.first(local::kFrameHeaderBytes)).value();
            types.push_back(header.type);
            const auto payload = rest.subspan(local::kFrameHeaderBytes, header.payload_bytes);
            if (header.type == local::FrameType::kWelcome) {
                welcome_ =
                    std::get<local::Welcome>(local::decode_payload(header.type, payload).value());
            }
            rest = rest.subspan(local::kFrameHeaderBytes + header.payload_bytes);
        }
        return types;
    }

    // As received(); waits for at least one frame.
    std::vector<local::FrameType> wait_for_frames() {
        std::vector<local::FrameType> types;
        until([&] {
            types = types.empty() ? received() : types;
            return !types.empty();
        });
        return types;
    }

    void consume(std::vector<std::uint64_t> samples) {
        relay_->on_request({0, local::Consumed{3, std::move(samples)}});
    }

    void plan(std::uint64_t own, const std::vector<std::uint64_t>& ids) {
        relay_->on_request({5, local::Plan{3, own, 0}, test::sealed_ids(ids)});
    }

    template <class Condition>
    void until(Condition condition) {
        const TimePoint end = clock_.now() + std::chrono::seconds{60};
        while (!condition() && clock_.now() < end) {
            loop_.step(std::chrono::milliseconds{10});
        }
        ASSERT_TRUE(condition());
    }

    test::TempFolder folder_;
    std::string path_ = folder_.path() + "/leader.sock";
    SystemClock clock_;
    EventLoop loop_{clock_};
    Silence silence_;
    UniqueFd client_;
    local::Welcome welcome_;  // the last that received() saw
    bool lost_ = false;
    bool must_wait_ = false;
    std::optional<Session> session_;
    std::optional<Relay> relay_;
    std::optional<Leader> leader_;
};

TEST_F(RelayTest, WelcomesTheClientWithTheRelaysDirectory) {
    lead(kOld);
    until([this] { return relay_->is_welcomed(); });
    wait_for_frames();
    EXPECT_EQ(welcome_.directory, "/mine") << "not the leader's";
}

TEST_F(RelayTest, SendsTheNextEpochsBeginningToALeaderThatAcceptsIt) {
    Leader& leader = lead(kOld | local::kFeatureAhead);
    until([this] { return relay_->is_welcomed(); });
    plan(2, {4, 5, 6});
    until([&] { return leader.plans.size() == 1; });
    EXPECT_EQ(ids_in(leader.plans[0].fd), 3U);
}

TEST_F(RelayTest, CutsTheLookaheadForALaterLeaderThatDoesNotKnowIt) {
    lead(kOld | local::kFeatureAhead);
    until([this] { return relay_->is_welcomed(); });
    plan(2, {4, 5, 6});
    end_of_leader();
    Leader& old = lead(kOld);
    until([&] { return old.plans.size() == 1; });
    EXPECT_EQ(ids_in(old.plans[0].fd), 2U) << "said again";
    plan(3, {4, 5, 6, 7});
    until([&] { return old.plans.size() == 2; });
    EXPECT_EQ(ids_in(old.plans[1].fd), 3U) << "of the next epoch";
    end_of_leader();
    Leader& next = lead(kOld | local::kFeatureAhead);
    until([&] { return next.plans.size() == 1; });
    EXPECT_EQ(ids_in(next.plans[0].fd), 4U) << "it is still known";
}

TEST_F(RelayTest, LeavesOutPOthersForALeaderThatDoesNotKnowThem) {
    const local::Losses losses{0, {1, 2}, {0.5F, 2}, {0.25F, 0.125F}};
    Leader& leader = lead(kOld | local::kFeaturePOthers);
    until([this] { return relay_->is_welcomed(); });
    relay_->on_request({0, losses});
    until([&] { return leader.losses.size() == 1; });
    EXPECT_EQ(leader.losses[0], losses);
    end_of_leader();
    Leader& old = lead(kOld);
    until([&] {
        relay_->on_request({0, losses});
        loop_.step(std::chrono::milliseconds{1});
        return !old.losses.empty();
    });
    EXPECT_EQ(old.losses[0], (local::Losses{0, {1, 2}, {0.5F, 2}}));
}

TEST_F(RelayTest, ReplaysMillionsOfReadsToASlowLeader) {
    constexpr std::uint64_t kSamples = 5'000'000;
    constexpr std::uint64_t kInOneFrame = 100'000;
    lead(kOld | local::kFeatureAhead, kSamples);
    until([this] { return relay_->is_welcomed(); });
    std::vector<std::uint64_t> order(kSamples);
    std::iota(order.begin(), order.end(), 0U);
    plan(kSamples, order);
    // Reads all samples but the first: the position where a plan starts cannot express this gap.
    for (std::uint64_t at = 1; at < kSamples; at += kInOneFrame) {
        const auto end = std::min(at + kInOneFrame, kSamples);
        consume(
            {order.begin() + static_cast<std::ptrdiff_t>(at),
             order.begin() + static_cast<std::ptrdiff_t>(end)});
        until([&] { return leader_->consumed == end - 1; });
    }
    end_of_leader();
    lost_ = false;
    Leader& next = lead(kOld | local::kFeatureAhead, kSamples, false);
    for (int step = 0; step < 50; ++step) {
        loop_.step(std::chrono::milliseconds{1});
    }
    EXPECT_FALSE(lost_) << "it gave up on a leader that is busy";
    EXPECT_TRUE(relay_->is_connected());
    next.read_on();
    until([&] { return next.consumed == kSamples - 1; });
    EXPECT_FALSE(lost_);
}

TEST_F(RelayTest, AClientWaitsForALeaderThatReadsNothing) {
    Leader& leader = lead(kOld | local::kFeatureAhead, 10, false);
    until([this] { return relay_->is_welcomed(); });
    const auto frame =
        local::encode_frame(local::Consumed{3, std::vector<std::uint64_t>(100'000, 1)}, 0);
    constexpr std::uint64_t kFrames = 64;  // 51 MB: more than a backlog may have
    std::uint64_t sent = 0;
    std::size_t taken = 0;
    int idle = 0;
    while (sent < kFrames && idle < 100) {
        const auto wrote = ::send(
            client_.get(), frame.data() + taken, frame.size() - taken, MSG_DONTWAIT | MSG_NOSIGNAL);
        idle = wrote > 0 ? 0 : idle + 1;
        taken += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
        sent += taken / frame.size();
        taken %= frame.size();
        loop_.step(std::chrono::milliseconds{1});
    }
    EXPECT_LT(sent, kFrames / 2) << "nobody stops the client";
    EXPECT_FALSE(lost_);
    leader.read_on();
    until([&] { return leader.consumed >= sent * 100'000; });
}

TEST_F(RelayTest, AnswersByItselfWhileNoSidecarLeads) {
    lead(kOld | local::kFeatureAhead);
    until([this] { return relay_->is_welcomed(); });
    end_of_leader();
    relay_->stand_in({ErrorCode::kUnavailable, "nobody leads"});
    relay_->on_request({8, local::Fetch{{1, 2}}});
    plan(3, {4, 5, 6});
    using local::FrameType;
    EXPECT_THAT(
        received(),
        testing::ElementsAre(FrameType::kWelcome, FrameType::kFetched, FrameType::kPlanned));
    Leader& next = lead(kOld | local::kFeatureAhead);
    until([&] { return next.plans.size() == 1; });
    EXPECT_EQ(ids_in(next.plans[0].fd), 3U) << "a plan that was taken alone is said later";
}

TEST_F(RelayTest, AnswersAWaitingFetchWhenNoSidecarLeads) {
    lead(kOld, 10, false);
    until([this] { return relay_->is_welcomed(); });
    received();
    relay_->on_request({8, local::Fetch{{1, 2}}});
    end_of_leader();
    relay_->stand_in({ErrorCode::kUnavailable, "nobody leads"});
    EXPECT_THAT(received(), testing::ElementsAre(local::FrameType::kFetched));
}

TEST_F(RelayTest, PassesOnTheReadyPartOfAFetchToAClientThatCannotReadTheOrigin) {
    must_wait_ = true;
    Leader& leader = lead(kOld);
    until([this] { return relay_->is_welcomed(); });
    leader.fetched.statuses = {local::FetchStatus::kReady, local::FetchStatus::kReadAtOrigin};
    received();
    relay_->on_request({8, local::Fetch{{1, 2}}});
    EXPECT_THAT(wait_for_frames(), testing::ElementsAre(local::FrameType::kFetched));
    EXPECT_EQ(leader.fetches, 1);
}

TEST_F(RelayTest, RepeatsAFetchWithoutReadySamplesForAClientThatCannotReadTheOrigin) {
    must_wait_ = true;
    Leader& leader = lead(kOld);
    until([this] { return relay_->is_welcomed(); });
    leader.fetched.statuses = {local::FetchStatus::kReadAtOrigin};
    received();
    relay_->on_request({8, local::Fetch{{1}}});
    until([&] { return leader.fetches == 1; });
    leader.fetched.statuses = {local::FetchStatus::kReady};
    EXPECT_THAT(received(), testing::IsEmpty());
    EXPECT_THAT(wait_for_frames(), testing::ElementsAre(local::FrameType::kFetched));
    EXPECT_EQ(leader.fetches, 2);
}

}  // namespace
}  // namespace stoker::sidecar

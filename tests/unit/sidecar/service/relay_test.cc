// A relay between one session and leaders of different ages.
#include "sidecar/service/relay.h"

#include <chrono>
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

// Answers each hello with these features, and keeps the plans that it is told.
class Leader {
public:
    Leader(EventLoop& loop, const std::string& path, std::uint32_t features)
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
          features_(features) {}

    std::vector<Frame> plans;

private:
    void on_frame(Frame frame) {
        if (frame.header.type == local::FrameType::kHello) {
            socket_->send(
                local::Welcome{local::kProtocolVersion, 1, 10, "/n", features_},
                frame.header.request_id);
        } else if (frame.header.type == local::FrameType::kPlan) {
            plans.push_back(std::move(frame));
        }
    }

    std::unique_ptr<UnixListener> listener_;
    std::unique_ptr<FrameSocket> socket_;
    std::uint32_t features_;
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
            [](const Frame&) {},
            [](const std::string&) {});
        relay_.emplace(loop_, *session_, "/mine", silence_, [this] { lost_ = true; });
    }

    // A leader takes the place of the one before.
    Leader& lead(std::uint32_t features) {
        leader_.reset();
        leader_.emplace(loop_, path_, features);
        EXPECT_TRUE(relay_->connect(path_).has_value());
        return *leader_;
    }

    void end_of_leader() {
        leader_.reset();
        until([this] { return lost_; });
    }

    void plan(std::uint64_t own, const std::vector<std::uint64_t>& ids) {
        const auto bytes = local::encode_frame(local::Plan{3, own, 0}, 5);
        const std::span all{bytes};
        relay_->on_request(
            {local::decode_frame_header(all.first(local::kFrameHeaderBytes)).value(),
             {all.begin() + local::kFrameHeaderBytes, all.end()},
             test::sealed_ids(ids)});
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
    bool lost_ = false;
    std::optional<Session> session_;
    std::optional<Relay> relay_;
    std::optional<Leader> leader_;
};

TEST_F(RelayTest, CarriesTheBeginningOfTheNextEpochToALeaderThatTakesIt) {
    Leader& leader = lead(kOld | local::kFeatureAhead);
    until([this] { return relay_->is_welcomed(); });
    plan(2, {4, 5, 6});
    until([&] { return leader.plans.size() == 1; });
    EXPECT_EQ(ids_in(leader.plans[0].fd), 3U);
}

TEST_F(RelayTest, CutsItOffForALeaderThatIsOlderThanWhatItsClientWasTold) {
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

}  // namespace
}  // namespace stoker::sidecar

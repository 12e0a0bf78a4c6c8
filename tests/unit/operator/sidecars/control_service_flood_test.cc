// Attacks on the control port: half-open connections, silence, and endless headers.
#include <cerrno>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/base/check.h"
#include "common/base/unique_fd.h"
#include "operator/sidecars/control_service.h"
#include "tests/support/certificates.h"
#include "tests/support/manual_clock.h"
#include "tests/support/poll.h"
#include "tests/support/sidecar_client.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using test::eventually;
using testing::make_hello;
using testing::make_report;
using testing::SidecarClient;

constexpr std::size_t kHalfOpenMax = 64;

class OneToken final : public Authenticator {
public:
    void authenticate(std::string token, Done done) override {
        const PodIdentity pod{"ml", "default", token, ""};
        done(
            token == "a" || token == "b" ? Result<PodIdentity>{pod}
                                         : fail(ErrorCode::kForbidden, "unknown token"));
    }
};

struct ControlServiceFloodTest : ::testing::Test {
    ControlServiceFloodTest() {
        ControlServiceOptions options;
        options.listen = "127.0.0.1:0";
        options.half_open_max = kHalfOpenMax;
        const auto served = std::make_shared<const ServedCertificate>(
            ServedCertificate{{certificates.certificate, certificates.key}, certificates.ca});
        options.certificate = [served] { return served; };
        service = ControlService::start(
                      std::move(options),
                      registry,
                      {nodes, {"stoker-system", "stoker-node"}, [](const auto&) { return ""; }},
                      authenticator,
                      clock)
                      .value();
    }

    std::unique_ptr<SidecarClient> dial(const std::string& token) {
        return std::make_unique<SidecarClient>(
            "localhost:" + std::to_string(service->port()), certificates.ca, token);
    }

    // Sends a hello as pod `token` and waits for its acceptance.
    std::unique_ptr<SidecarClient> attach(const std::string& token) {
        auto client = dial(token);
        v1::OperatorMessage answer;
        EXPECT_TRUE(client->hello(make_hello("ml", token)));
        EXPECT_TRUE(client->receive(answer)) << client->finish().error_message();
        return client;
    }

    // Opens a TCP connection that sends nothing.
    UniqueFd connect_from(const char* source) {
        UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        sockaddr_in own{};
        own.sin_family = AF_INET;
        ::inet_pton(AF_INET, source, &own.sin_addr);
        sockaddr_in there = own;
        there.sin_port = htons(service->port());
        ::inet_pton(AF_INET, "127.0.0.1", &there.sin_addr);
        const bool connected =
            ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
            ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0;
        STOKER_CHECK(connected, std::strerror(errno));
        return socket;
    }

    // Before the TLS handshake, gRPC sends nothing: a readable socket has been closed.
    static bool is_cut(const UniqueFd& socket) {
        char byte = 0;
        const ssize_t got = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
        return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    }

    testing::TestCertificates certificates = testing::make_certificates();
    testing::ManualClock clock;
    OneToken authenticator;
    SidecarRegistry registry{{}, nullptr};
    NodeRegistry nodes{{}, [](const auto&) { return std::vector<PoolOrder>{}; }, nullptr};
    std::unique_ptr<ControlService> service;
};

TEST_F(ControlServiceFloodTest, HalfOpenConnectionsDoNotBlockOthers) {
    const auto living = attach("a");
    std::vector<UniqueFd> flood;
    for (int i = 0; i < 600; ++i) {
        flood.push_back(connect_from("127.0.0.1"));
    }
    EXPECT_TRUE(eventually([&] { return is_cut(flood[500]); }));
    EXPECT_LE(service->half_open_count(), kHalfOpenMax);
    const auto newcomer = attach("b");
    ASSERT_TRUE(living->report(make_report(1, 500)));
    EXPECT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
    EXPECT_EQ(registry.counts().attached, 2U);
}

TEST_F(ControlServiceFloodTest, FloodFromOneAddressCutsNoOther) {
    const UniqueFd honest = connect_from("127.0.0.1");
    std::vector<UniqueFd> flood;
    for (int i = 0; i < 300; ++i) {
        flood.push_back(connect_from("127.0.0.2"));
    }
    EXPECT_TRUE(eventually([&] { return is_cut(flood[200]); }));
    EXPECT_FALSE(is_cut(honest));
}

TEST_F(ControlServiceFloodTest, CutsConnectionsThatDoNotAuthenticateInTime) {
    const auto living = attach("a");
    const UniqueFd silent = connect_from("127.0.0.1");
    const UniqueFd slow = connect_from("127.0.0.1");
    ASSERT_EQ(::send(slow.get(), "\x16\x03\x01", 3, 0), 3);  // the start of a ClientHello
    const auto stranger = dial("c");
    EXPECT_EQ(stranger->finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
    ASSERT_TRUE(eventually([&] { return service->half_open_count() >= 3; }));
    clock.advance(seconds{16});
    EXPECT_TRUE(eventually([&] { return service->half_open_count() == 0; }));
    EXPECT_TRUE(eventually([&] { return is_cut(silent) && is_cut(slow); }));
    ASSERT_TRUE(living->report(make_report(1, 500)));
    EXPECT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
}

TEST_F(ControlServiceFloodTest, IgnoresClosedConnections) {
    {
        const UniqueFd brief = connect_from("127.0.0.1");
        ASSERT_TRUE(eventually([&] { return service->half_open_count() == 1; }));
    }
    EXPECT_TRUE(eventually([&] { return service->half_open_count() == 0; }));
}

TEST_F(ControlServiceFloodTest, RejectsEndlessHeader) {
    const auto living = attach("a");
    const auto noisy = dial(std::string(1 << 20, 'x'));
    EXPECT_FALSE(noisy->finish().ok());
    ASSERT_TRUE(living->report(make_report(1, 500)));
    EXPECT_TRUE(eventually([&] { return registry.counts().reports == 1; }));
}

}  // namespace
}  // namespace stoker::control

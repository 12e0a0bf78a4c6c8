// The real program while no peer answers: it is ready at once, because a pod must not wait for its
// cache, and it reports its pending dependency.
#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "tests/support/certificates.h"
#include "tests/support/http_raw_client.h"
#include "tests/support/poll.h"
#include "tests/support/sample_client.h"
#include "tests/support/sidecar_process.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {
namespace {

constexpr Duration kPatience = std::chrono::seconds{60};

// A loopback port whose connections the kernel accepts but no program answers; after close() they
// are refused.
class DeadServer {
public:
    DeadServer()
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* plain = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof(address);
        const bool listens = ::bind(socket_.get(), plain, size) == 0 &&
                             ::listen(socket_.get(), 16) == 0 &&
                             ::getsockname(socket_.get(), plain, &size) == 0;
        EXPECT_TRUE(listens);
        port_ = ntohs(address.sin_port);
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }

    void close() { socket_.reset(); }

private:
    UniqueFd socket_;
    std::uint16_t port_ = 0;
};

class SidecarAlone : public ::testing::TestWithParam<bool> {
protected:
    SidecarAlone() {
        if (GetParam()) {
            origin_.close();
            operator_.close();
        }
        write(folder_.path() + "/ca.crt", stoker::testing::make_certificates().ca);
        write(folder_.path() + "/token", "token");
    }

    static void write(const std::string& path, const std::string& text) {
        std::ofstream{path} << text;
    }

    // Starts the program with its HTTP server at this port.
    void start(std::uint16_t http_port) {
        const std::string path = folder_.path() + "/sidecar.yaml";
        write(
            path,
            fmt::format(
                "socket: {0}/s.sock\n"
                "http: {{listen: '127.0.0.1:{1}'}}\n"
                "control: {{endpoint: '127.0.0.1:{2}', caFile: {0}/ca.crt, tokenFile: {0}/token}}\n"
                "datasets:\n"
                "- name: train\n"
                "  origin: {{uri: 's3://bucket', endpoint: 'http://127.0.0.1:{3}'}}\n"
                "  directory: {0}/node\n",
                folder_.path(),
                http_port,
                operator_.port(),
                origin_.port()));
        sidecar_ =
            std::make_unique<SidecarProcess>(STOKER_SIDECAR_BINARY, path, folder_.path() + "/log");
    }

    // The HTTP server's answer to a GET; empty while the port is closed.
    static std::string get(std::uint16_t port, const std::string& target) {
        HttpRawClient client{port};
        const std::string request =
            fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target);
        return client.connected() && client.send(request) ? client.read_until_closed(kPatience)
                                                          : std::string{};
    }

    TempFolder folder_;
    DeadServer origin_;
    DeadServer operator_;
    std::unique_ptr<SidecarProcess> sidecar_;
};

TEST_P(SidecarAlone, IsReadyAtOnceAndTellsTrainersItsState) {
    DeadServer spare;  // its port is free after close()
    const std::uint16_t http = spare.port();
    spare.close();
    start(http);
    const auto is_ready = [&] { return get(http, "/readyz").starts_with("HTTP/1.1 200"); };
    ASSERT_TRUE(eventually(is_ready, kPatience))
        << "the startup probe would keep the trainer from starting";
    EXPECT_TRUE(get(http, "/healthz").starts_with("HTTP/1.1 200"));
    const std::string status = get(http, "/status");
    EXPECT_NE(status.find("\"serving\":false"), std::string::npos) << status;

    // The answer to a Hello comes at once, without a wait for the origin's time-out.
    SampleClient client{folder_.path() + "/s.sock"};
    ASSERT_TRUE(client.is_connected());
    local::Hello hello;
    hello.dataset = "train";
    client.send(hello);
    const auto answer = client.receive();
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    const bool tells = std::holds_alternative<local::Listing>(answer->message) ||
                       std::holds_alternative<local::ErrorReply>(answer->message);
    EXPECT_TRUE(tells) << "no Welcome to a dataset that nobody has listed";
    EXPECT_EQ(sidecar_->stop(), 0) << "and it goes when it is told to";
}

INSTANTIATE_TEST_SUITE_P(
    NobodyAnswers,
    SidecarAlone,
    ::testing::Bool(),
    [](const ::testing::TestParamInfo<bool>& refused) -> std::string {
        return refused.param ? "ConnectionsAreRefused" : "ConnectionsAreNeverAnswered";
    });

}  // namespace
}  // namespace stoker::test

#include "client/src/core/sidecar_client.h"

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"

namespace stoker::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The sidecar's end of one connection, scripted by the test.
class Peer {
public:
    explicit Peer(std::string path)
        : path_(std::move(path)),
          listener_(make_socket()) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
        EXPECT_EQ(
            ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
        EXPECT_EQ(::listen(listener_.get(), 4), 0);
    }

    void accept() { connection_ = UniqueFd{::accept(listener_.get(), nullptr, nullptr)}; }

    void hang_up() { connection_.reset(); }

    // Receives the next frame and its descriptor.
    std::pair<local::FrameHeader, local::Message> receive() {
        const auto raw = take(local::kFrameHeaderBytes);
        const auto header = local::decode_frame_header(raw).value();
        const auto payload = take(header.payload_bytes);
        return {header, local::decode_payload(header.type, payload).value()};
    }

    void send(const local::Message& message, std::uint64_t request_id) {
        send_raw(local::encode_frame(message, request_id));
    }

    void send_raw(std::span<const std::byte> bytes) {
        EXPECT_EQ(
            ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
    }

    UniqueFd passed_fd;

private:
    static UniqueFd make_socket() { return UniqueFd{::socket(AF_UNIX, SOCK_STREAM, 0)}; }

    std::vector<std::byte> take(std::size_t size) {
        std::vector<std::byte> out(size);
        std::size_t got = 0;
        while (got < size) {
            iovec part{out.data() + got, size - got};
            alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
            msghdr message{};
            message.msg_iov = &part;
            message.msg_iovlen = 1;
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            const ssize_t count = ::recvmsg(connection_.get(), &message, 0);
            if (count <= 0) {
                ADD_FAILURE() << "the client hung up";
                return out;
            }
            if (const cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
                passed_fd = UniqueFd{fd};
            }
            got += static_cast<std::size_t>(count);
        }
        return out;
    }

    std::string path_;
    UniqueFd listener_;
    UniqueFd connection_;
};

class SidecarClientTest : public testing::Test {
protected:
    SidecarClientTest()
        : path_(folder_.path() + "/s"),
          peer_(path_) {}

    [[nodiscard]] TimePoint in(Duration duration) const { return clock_.now() + duration; }

    SidecarClient connect() {
        auto client = SidecarClient::connect(path_, hello(), clock_, in(seconds{30})).value();
        peer_.accept();
        hello_id_ = peer_.receive().first.request_id;
        return client;
    }

    static local::Hello hello() {
        local::Hello hello;
        hello.dataset = "train";
        return hello;
    }

    test::TempFolder folder_;
    std::string path_;
    SystemClock clock_;
    Peer peer_;
    std::uint64_t hello_id_ = 0;
};

TEST_F(SidecarClientTest, SendsHelloAndWaitsThroughTheListing) {
    auto client = connect();
    peer_.send(local::Listing{10}, hello_id_);
    peer_.send(local::Welcome{local::kProtocolVersion, 1, 2, "/node"}, hello_id_);
    const auto listing = client.await_welcome(in(seconds{30})).value();
    EXPECT_EQ(std::get<local::Listing>(listing).objects_listed, 10U);
    const auto welcome = client.await_welcome(in(seconds{30})).value();
    EXPECT_EQ(std::get<local::Welcome>(welcome).directory, "/node");
    EXPECT_TRUE(client.is_usable());
}

TEST_F(SidecarClientTest, ARefusalIsTheSidecarsErrorAndEndsTheConnection) {
    auto client = connect();
    peer_.send(local::ErrorReply{1, "no dataset 'train'"}, hello_id_);
    const Error error = client.await_welcome(in(seconds{30})).error();
    EXPECT_EQ(error, (Error{ErrorCode::kNotFound, "no dataset 'train'"}));
    EXPECT_FALSE(client.is_usable());
}

TEST_F(SidecarClientTest, AnUnknownErrorCodeIsInternal) {
    auto client = connect();
    peer_.send(local::ErrorReply{999, "?"}, hello_id_);
    EXPECT_EQ(client.await_welcome(in(seconds{30})).error().code, ErrorCode::kInternal);
}

TEST_F(SidecarClientTest, RefusesAnotherVersionNamingBoth) {
    auto client = connect();
    peer_.send(local::Welcome{7, 1, 2, "/node"}, hello_id_);
    const Error error = client.await_welcome(in(seconds{30})).error();
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message.find("version 7"), std::string::npos) << error.message;
}

TEST_F(SidecarClientTest, FetchesAndMatchesTheAnswer) {
    auto client = connect();
    std::jthread sidecar{[this] {
        const auto [header, message] = peer_.receive();
        EXPECT_EQ(std::get<local::Fetch>(message).samples, (std::vector<std::uint64_t>{5, 9}));
        peer_.send(
            local::Fetched{{local::FetchStatus::kReady, local::FetchStatus::kOriginError}, "404"},
            header.request_id);
    }};
    const std::vector<std::uint64_t> ids{5, 9};
    const auto fetched = client.fetch(ids, in(seconds{30})).value();
    EXPECT_EQ(fetched.statuses.at(1), local::FetchStatus::kOriginError);
    EXPECT_EQ(fetched.message, "404");
}

TEST_F(SidecarClientTest, AMismatchedAnswerEndsTheConnection) {
    const std::vector<std::uint64_t> ids{5, 9};
    const local::Fetched one_status{{local::FetchStatus::kReady}, ""};
    const local::Fetched two{{local::FetchStatus::kReady, local::FetchStatus::kReady}, ""};

    struct Case {
        local::Message answer;
        std::uint64_t id_offset;
    };

    for (const Case& wrong : {Case{one_status, 0}, Case{two, 1}, Case{local::Planned{}, 0}}) {
        auto client = connect();
        peer_.send(wrong.answer, hello_id_ + 1 + wrong.id_offset);
        EXPECT_EQ(client.fetch(ids, in(seconds{30})).error().code, ErrorCode::kInvalidArgument);
        EXPECT_FALSE(client.is_usable());
    }
}

TEST_F(SidecarClientTest, InvalidBytesEndTheConnection) {
    auto client = connect();
    peer_.send_raw(std::vector<std::byte>(64, std::byte{0xFF}));
    EXPECT_EQ(client.await_welcome(in(seconds{30})).error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(client.is_usable());
}

TEST_F(SidecarClientTest, ASidecarThatHangsUpIsUnavailable) {
    auto client = connect();
    const auto frame = local::encode_frame(local::Listing{1}, hello_id_);
    peer_.send_raw(std::span{frame}.first(10));
    peer_.hang_up();
    EXPECT_EQ(client.await_welcome(in(seconds{30})).error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(client.is_usable());
    EXPECT_EQ(client.send_report({}).error().code, ErrorCode::kUnavailable);
}

TEST_F(SidecarClientTest, ASilentSidecarFailsAtTheDeadline) {
    auto client = connect();
    EXPECT_FALSE(client.has_answer());
    const std::vector<std::uint64_t> ids{1};
    EXPECT_EQ(client.fetch(ids, in(milliseconds{20})).error().code, ErrorCode::kDeadlineExceeded);
    EXPECT_FALSE(client.is_usable()) << "its answer may still come and would be taken for another";
}

TEST_F(SidecarClientTest, SendsThePlanAsASealedMemfd) {
    auto client = connect();
    std::jthread sidecar{
        [this] { peer_.send(local::Planned{}, peer_.receive().first.request_id); }};
    const std::vector<std::uint64_t> ids{3, 1, 2};
    ASSERT_TRUE(client.send_plan(4, ids, 1, {}, in(seconds{30})).has_value());
    sidecar.join();
    const int fd = peer_.passed_fd.get();
    std::vector<std::uint64_t> got(3);
    ASSERT_EQ(::pread(fd, got.data(), 24, 0), 24);
    EXPECT_EQ(got, ids);
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    EXPECT_EQ(::fcntl(fd, F_GET_SEALS), seals);
}

TEST_F(SidecarClientTest, AppendsTheNextEpochsBeginningUpToItsLimit) {
    auto client = connect();
    local::Plan said;
    std::jthread sidecar{[&] {
        const auto [header, message] = peer_.receive();
        said = std::get<local::Plan>(message);
        peer_.send(local::Planned{}, header.request_id);
    }};
    const std::vector<std::uint64_t> ids{3, 1, 2};
    const std::vector<std::uint64_t> ahead(local::kAheadSamplesMax + 5, 9);
    ASSERT_TRUE(client.send_plan(4, ids, 1, ahead, in(seconds{30})).has_value());
    sidecar.join();
    EXPECT_EQ(said, (local::Plan{4, 3, 1}));
    std::vector<std::uint64_t> got(3 + ahead.size());
    const ssize_t bytes = ::pread(peer_.passed_fd.get(), got.data(), got.size() * 8, 0);
    EXPECT_EQ(static_cast<std::uint64_t>(bytes), (3 + local::kAheadSamplesMax) * 8);
    EXPECT_EQ(
        (std::vector(got.begin(), got.begin() + 4)), (std::vector<std::uint64_t>{3, 1, 2, 9}));
}

TEST_F(SidecarClientTest, OneWayFramesNeverWait) {
    auto client = connect();
    const std::vector<std::uint64_t> ids(1000, 7);
    bool told_to_drop = false;
    for (int round = 0; round < 100000 && !told_to_drop && client.is_usable(); ++round) {
        const auto sent = client.send_consumed(1, ids);
        told_to_drop = !sent.has_value() || !*sent;
    }
    EXPECT_TRUE(told_to_drop) << "the peer reads nothing";
}

TEST_F(SidecarClientTest, AForkedChildCannotUseItAndDoesNotDisturbIt) {
    auto client = connect();
    const pid_t child = ::fork();
    if (child == 0) {
        const std::vector<std::uint64_t> ids{1};
        const bool refused = !client.is_usable() && !client.send_consumed(0, ids).has_value();
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    peer_.send(local::Welcome{local::kProtocolVersion, 1, 2, "/node"}, hello_id_);
    EXPECT_TRUE(client.await_welcome(in(seconds{30})).has_value());
}

TEST_F(SidecarClientTest, WithoutAListenerIsUnavailable) {
    const auto none = SidecarClient::connect(path_ + "x", hello(), clock_, in(seconds{30}));
    EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
    const auto long_path =
        SidecarClient::connect(std::string(200, 'x'), hello(), clock_, in(seconds{30}));
    EXPECT_EQ(long_path.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::client

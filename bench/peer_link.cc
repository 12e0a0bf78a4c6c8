// stoker-bench-peer-link [ROUNDS [MIB]]     peers' frames compared with a plain TLS byte stream
//
// Sends MIB (default 512) over loopback between two ends of this process: as frames with payloads
// of 4 KiB and 110 KiB through TlsNetwork, and as the bytes of one TLS connection with a blocking
// writer and a blocking reader (OpenSSL's defaults, the same cipher). Order A-B-B-A in each round.
// Prints one JSON object per pass: `mib_per_second` and `cpu_seconds_per_gib` (both ends, all
// threads), then one per frame size: the median ratios to the stream. Exits with 1 if the rate of
// 4 KiB or 110 KiB frames is below kBar of the stream's. "stream_read_ahead" and "stream_ktls" are
// the stream with one option each; kTLS needs the kernel's tls module.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/base/check.h"
#include "operator/certificates/authority.h"
#include "sidecar/peers/peer_key.h"
#include "sidecar/peers/tcp.h"
#include "sidecar/peers/tls_context.h"
#include "sidecar/peers/tls_network.h"

namespace stoker::bench {

namespace {

using sidecar::PeerChannel;
using sidecar::PeerCredentials;
using sidecar::PeerEvents;
using sidecar::PeerFrame;
using sidecar::PeerIdentity;
using sidecar::TlsNetwork;

constexpr double kBar = 0.8;
constexpr std::size_t kUnsentMax = std::size_t{4} << 20U;
constexpr std::size_t kHeadBytes = 40;
constexpr std::size_t kStreamBuffer = std::size_t{256} << 10U;
constexpr double kMib = 1 << 20;

struct Measured {
    double mib_per_second = 0;
    double cpu_per_gib = 0;
};

double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Stopwatch {
public:
    [[nodiscard]] Measured after(std::size_t bytes) const {
        const std::chrono::duration<double> passed = clock_.now() - begin_;
        const double mib = static_cast<double>(bytes) / kMib;
        return {mib / passed.count(), (cpu_seconds() - cpu_begin_) / (mib / 1024)};
    }

private:
    SystemClock clock_{};
    TimePoint begin_ = clock_.now();
    double cpu_begin_ = cpu_seconds();
};

PeerCredentials make_credentials() {
    const WallTime now = SystemClock{}.wall_now();
    const auto authority = control::advance_authority(std::nullopt, "bench", {}, now).value();
    const auto key = sidecar::make_peer_key().value();
    return {
        control::issue_peer_leaf(
            authority, key.request, {"stoker://namespace/bench/dataset/1"}, {}, now)
            .value(),
        key.key,
        control::trust_bundle(authority)};
}

// Keeps its channel's queue full until all frames are sent.
struct Sender final : PeerEvents {
    std::unique_ptr<PeerChannel> channel{};
    std::shared_ptr<std::vector<std::byte>> payload{};
    std::size_t left = 0;  // frames
    bool is_open = false;

    void fill() {
        for (; left > 0 && channel->unsent_bytes() < kUnsentMax; --left) {
            channel->send({std::vector<std::byte>(kHeadBytes), {*payload, payload}});
        }
    }

    void on_open(const PeerIdentity& /*peer*/) override { is_open = true; }

    void on_frame(PeerFrame /*frame*/) override {}

    void on_drained() override { fill(); }

    void on_end(const Error& error) override { STOKER_CHECK(false, error.message.c_str()); }
};

struct Receiver final : PeerEvents {
    std::unique_ptr<PeerChannel> channel{};
    std::size_t received = 0;
    std::size_t wanted = 0;
    EventLoop* loop = nullptr;

    void on_open(const PeerIdentity& /*peer*/) override {}

    void on_frame(PeerFrame frame) override {
        received += frame.payload.bytes.size();
        if (received >= wanted) {
            loop->stop();
        }
    }

    void on_end(const Error& error) override { STOKER_CHECK(false, error.message.c_str()); }
};

Measured send_frames(const PeerCredentials& credentials, std::size_t bytes, std::size_t size) {
    const SystemClock clock;
    EventLoop sending{clock};
    EventLoop receiving{clock};
    TlsNetwork there{receiving, {.host = "127.0.0.1"}};
    TlsNetwork here{sending, {.host = "127.0.0.1"}};
    there.set_credentials(credentials);
    here.set_credentials(credentials);
    const std::size_t frames = bytes / size;
    Receiver receiver;
    receiver.wanted = frames * size;
    receiver.loop = &receiving;
    const auto address = there.listen([&](std::unique_ptr<PeerChannel> channel) -> PeerEvents& {
        receiver.channel = std::move(channel);
        return receiver;
    });
    Sender sender;
    sender.payload = std::make_shared<std::vector<std::byte>>(size);
    sender.left = frames;
    sender.channel = here.connect(address.value(), sender);
    while (!sender.is_open) {
        sending.step(std::chrono::milliseconds{1});
        receiving.step({});
    }
    const Stopwatch watch;
    std::jthread end([&] {
        receiving.run();
        sending.stop();
    });
    sender.fill();
    sending.run();
    end.join();
    return watch.after(receiver.received);
}

struct StreamOptions {
    bool read_ahead = false;
    bool ktls = false;
};

struct StreamEnd {
    UniqueFd socket{};
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{nullptr, &SSL_CTX_free};
    sidecar::SslPtr tls{};
};

StreamEnd make_end(UniqueFd socket, const PeerCredentials& credentials, StreamOptions options) {
    StreamEnd end;
    const auto ours = sidecar::make_tls_context(credentials).value();
    end.socket = std::move(socket);
    end.context.reset(SSL_CTX_new(TLS_method()));
    SSL_CTX* context = end.context.get();
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_use_certificate(context, SSL_CTX_get0_certificate(ours.get()));
    SSL_CTX_use_PrivateKey(context, SSL_CTX_get0_privatekey(ours.get()));
    if (options.read_ahead) {
        SSL_CTX_set_read_ahead(context, 1);
        SSL_CTX_set_default_read_buffer_len(context, std::size_t{64} << 10U);
    }
    if (options.ktls) {
        SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS);
    }
    end.tls.reset(SSL_new(context));
    SSL_set_fd(end.tls.get(), end.socket.get());
    return end;
}

// Two connected blocking sockets.
std::pair<UniqueFd, UniqueFd> make_sockets() {
    const UniqueFd listener = sidecar::listen_tcp("127.0.0.1", 0).value();
    UniqueFd client = sidecar::connect_tcp(sidecar::local_address(listener.get()).value()).value();
    UniqueFd server;
    while (!server.valid()) {
        server.reset(::accept(listener.get(), nullptr, nullptr));
    }
    STOKER_CHECK(::fcntl(client.get(), F_SETFL, 0) == 0, "a blocking socket");
    for (const UniqueFd* socket : {&client, &server}) {
        sidecar::set_peer_options(socket->get(), std::chrono::seconds{30});
    }
    return {std::move(client), std::move(server)};
}

// Sends the bytes over one TLS stream. nullopt: the kernel has no TLS.
std::optional<Measured> stream_bytes(
    const PeerCredentials& credentials, std::size_t bytes, StreamOptions options) {
    auto [client, server] = make_sockets();
    StreamEnd writer = make_end(std::move(client), credentials, options);
    StreamEnd reader = make_end(std::move(server), credentials, options);
    std::jthread handshake([&] { SSL_accept(reader.tls.get()); });
    STOKER_CHECK(SSL_connect(writer.tls.get()) == 1, "the handshake of a plain stream");
    handshake.join();
    if (options.ktls && BIO_get_ktls_send(SSL_get_wbio(writer.tls.get())) == 0) {
        return std::nullopt;
    }
    const Stopwatch watch;
    std::jthread writing([&] {
        const std::vector<std::byte> buffer(kStreamBuffer);
        for (std::size_t sent = 0; sent < bytes; sent += buffer.size()) {
            SSL_write(writer.tls.get(), buffer.data(), static_cast<int>(buffer.size()));
        }
    });
    std::vector<std::byte> buffer(kStreamBuffer);
    std::size_t received = 0;
    for (std::size_t count = 0; received < bytes; received += count) {
        const int result = SSL_read_ex(reader.tls.get(), buffer.data(), buffer.size(), &count);
        STOKER_CHECK(result == 1, "a plain stream broke");
    }
    writing.join();
    return watch.after(received);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// All passes of one kind.
struct Passes {
    std::vector<double> rates{};
    std::vector<double> cpus{};
};

class Bench {
public:
    explicit Bench(std::size_t bytes)
        : bytes_(bytes) {}

    void frames(std::size_t size) {
        note(name_of(size), send_frames(credentials_, bytes_ / size * size, size));
    }

    void stream(const std::string& name, StreamOptions options) {
        if (const auto measured = stream_bytes(credentials_, bytes_, options)) {
            note(name, *measured);
        } else if (!no_ktls_) {
            no_ktls_ = true;
            fmt::print("{{\"pass\":\"{}\",\"missing\":\"the kernel has no TLS\"}}\n", name);
        }
    }

    // The rate's ratio to that of `reference`, a plain stream.
    double compare(const std::string& name, const std::string& reference) {
        const Passes& plain = passes_[reference];
        const Passes& ours = passes_[name];
        if (ours.rates.empty()) {
            return 0;
        }
        const double rate = median(ours.rates) / median(plain.rates);
        fmt::print(
            "{{\"compared\":\"{}\",\"rate_to_stream\":{:.3f},\"cpu_per_gib_to_stream\":{:.3f}}}\n",
            name,
            rate,
            median(ours.cpus) / median(plain.cpus));
        return rate;
    }

    static std::string name_of(std::size_t size) { return fmt::format("frames_{}", size); }

    // Name of the stream that is measured in turns with frames of this size.
    static std::string stream_beside(std::size_t size) { return "stream_beside_" + name_of(size); }

private:
    void note(const std::string& name, Measured measured) {
        passes_[name].rates.push_back(measured.mib_per_second);
        passes_[name].cpus.push_back(measured.cpu_per_gib);
        fmt::print(
            "{{\"pass\":\"{}\",\"mib_per_second\":{:.0f},\"cpu_seconds_per_gib\":{:.3f}}}\n",
            name,
            measured.mib_per_second,
            measured.cpu_per_gib);
        std::fflush(stdout);
    }

    const PeerCredentials credentials_ = make_credentials();
    const std::size_t bytes_;
    std::map<std::string, Passes> passes_{};
    bool no_ktls_ = false;
};

int run(int rounds, std::size_t mib) {
    constexpr std::size_t kSmall = std::size_t{4} << 10U;
    constexpr std::size_t kLarge = std::size_t{110} << 10U;
    Bench bench{mib << 20U};
    for (int round = 0; round < rounds; ++round) {
        for (const std::size_t size : {kSmall, kLarge}) {
            bench.stream(Bench::stream_beside(size), {});
            bench.frames(size);
            bench.frames(size);
            bench.stream(Bench::stream_beside(size), {});
        }
        bench.stream("stream_read_ahead", {.read_ahead = true});
        bench.stream("stream_ktls", {.ktls = true});
    }
    bench.compare("stream_read_ahead", Bench::stream_beside(kLarge));
    bench.compare("stream_ktls", Bench::stream_beside(kLarge));
    const double small = bench.compare(Bench::name_of(kSmall), Bench::stream_beside(kSmall));
    const double large = bench.compare(Bench::name_of(kLarge), Bench::stream_beside(kLarge));
    return std::min(small, large) >= kBar ? 0 : 1;
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 4;
    const int mib = argc > 2 ? std::atoi(argv[2]) : 512;
    return stoker::bench::run(rounds, static_cast<std::size_t>(mib));
}

#include "tests/unit/sidecar/peers/raw_peer.h"

#include <array>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "common/base/check.h"
#include "common/config/host_port.h"

namespace stoker::test {

namespace {

void use_credentials(SSL* tls, const sidecar::PeerCredentials& credentials) {
    const sidecar::BioPtr chain = sidecar::bio_of(credentials.chain);
    const sidecar::CertificatePtr leaf{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)};
    const sidecar::BioPtr pem = sidecar::bio_of(credentials.key);
    const sidecar::PrivateKeyPtr key{PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, nullptr)};
    STOKER_CHECK(
        SSL_use_certificate(tls, leaf.get()) == 1 && SSL_use_PrivateKey(tls, key.get()) == 1,
        "credentials of a raw peer");
}

}  // namespace

RawPeer::RawPeer(const std::string& address)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto parsed = config::parse_host_port(address);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(parsed->port);
    ::inet_pton(AF_INET, parsed->host.c_str(), &to.sin_addr);
    STOKER_CHECK(
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0,
        "a raw peer connects");
}

bool RawPeer::shake_hands(const Options& options) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    tls_.reset(SSL_new(context.get()));
    SSL_set_fd(tls_.get(), socket_.get());
    SSL_set_max_proto_version(tls_.get(), options.version_max);
    if (options.credentials) {
        use_credentials(tls_.get(), *options.credentials);
    }
    if (!options.protocol.empty()) {
        const std::string offered = static_cast<char>(options.protocol.size()) + options.protocol;
        SSL_set_alpn_protos(
            tls_.get(),
            reinterpret_cast<const unsigned char*>(offered.data()),
            static_cast<unsigned>(offered.size()));
    }
    return SSL_connect(tls_.get()) == 1;
}

bool RawPeer::send(std::span<const std::byte> bytes) {
    return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
}

bool RawPeer::is_closed_by_peer() {
    std::array<char, 256> bytes{};
    if (tls_ != nullptr) {
        return SSL_read(tls_.get(), bytes.data(), bytes.size()) <= 0;
    }
    return ::recv(socket_.get(), bytes.data(), bytes.size(), 0) <= 0;
}

void RawPeer::cut_link() {
    std::array<sock_filter, 1> drop_all{BPF_STMT(BPF_RET | BPF_K, 0)};
    const sock_fprog program{drop_all.size(), drop_all.data()};
    STOKER_CHECK(
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0,
        "a filter that drops everything");
}

void RawPeer::close() {
    socket_.reset();
}

}  // namespace stoker::test

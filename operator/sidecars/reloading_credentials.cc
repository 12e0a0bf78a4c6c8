#include "operator/sidecars/reloading_credentials.h"

#include <string>
#include <utility>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "common/base/guarded.h"

namespace stoker::control {

namespace {

class ReloadingCredentials final : public grpc::ServerCredentials {
public:
    explicit ReloadingCredentials(CurrentCertificate current)
        : current_(std::move(current)),
          credentials_(grpc_ssl_server_credentials_create_with_options(
              grpc_ssl_server_credentials_create_options_using_config_fetcher(
                  GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, &ReloadingCredentials::fetch, this))) {}

    ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

    ReloadingCredentials(const ReloadingCredentials&) = delete;
    ReloadingCredentials& operator=(const ReloadingCredentials&) = delete;

    // The service itself checks tokens.
    void SetAuthMetadataProcessor(
        const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

private:
    int AddPortToServer(const std::string& address, grpc_server* server) override {
        return grpc_server_add_http2_port(server, address.c_str(), credentials_);
    }

    // gRPC calls it at the start and at each handshake.
    static grpc_ssl_certificate_config_reload_status fetch(
        void* self, grpc_ssl_server_certificate_config** config) {
        auto& credentials = *static_cast<ReloadingCredentials*>(self);
        const ServedCertificatePtr now = credentials.current_();
        auto used = credentials.used_.lock();
        if (now == *used) {
            return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
        }
        const grpc_ssl_pem_key_cert_pair pair{now->leaf.key.c_str(), now->leaf.certificate.c_str()};
        // No client certificate is requested, but gRPC 1.51 needs a trust bundle anyway.
        *config = grpc_ssl_server_certificate_config_create(now->trust.c_str(), &pair, 1);
        *used = now;
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
    }

    CurrentCertificate current_;
    Guarded<ServedCertificatePtr> used_;
    grpc_server_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> reloading_credentials(CurrentCertificate current) {
    return std::make_shared<ReloadingCredentials>(std::move(current));
}

}  // namespace stoker::control

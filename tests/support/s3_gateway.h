#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <sys/types.h>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "sidecar/origin/credentials.h"

namespace stoker::test {

// A real S3 server (versitygw over a directory) on loopback, as a child process with temporary
// storage. The destructor kills it.
class S3Gateway {
public:
    // `program` is the path of the versitygw binary. Waits until the server answers; running()
    // returns whether it does.
    explicit S3Gateway(const std::string& program);
    ~S3Gateway();
    S3Gateway(const S3Gateway&) = delete;
    S3Gateway& operator=(const S3Gateway&) = delete;

    [[nodiscard]] bool running() const { return running_; }

    [[nodiscard]] std::string endpoint() const;

    [[nodiscard]] const sidecar::Credentials& credentials() const { return credentials_; }

    Status make_bucket(const std::string& bucket);
    Status put(const std::string& bucket, const std::string& key, const std::string& bytes);
    Status remove(const std::string& bucket, const std::string& key);

private:
    Status send(const std::string& method, const std::string& path, const std::string& body);
    bool wait_until_it_answers();

    SystemClock clock_;
    sidecar::Credentials credentials_{"stoker-test", "stoker-test-secret", ""};
    std::filesystem::path folder_;
    std::uint16_t port_ = 0;
    pid_t child_ = -1;
    bool running_ = false;
    std::unique_ptr<http::HttpClient> client_;
};

}  // namespace stoker::test

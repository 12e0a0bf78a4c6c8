#include "tests/support/s3_gateway.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/unique_fd.h"
#include "sidecar/origin/s3_request.h"

namespace stoker::test {

namespace {

constexpr auto kStartMax = std::chrono::seconds{30};

// A port that was free when it was checked.
std::uint16_t free_port() {
    const UniqueFd probe{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(place);
    auto* raw = reinterpret_cast<sockaddr*>(&place);
    ::bind(probe.get(), raw, length);
    ::getsockname(probe.get(), raw, &length);
    return ntohs(place.sin_port);
}

void run_child(
    const std::string& program,
    const std::string& port,
    const std::filesystem::path& folder,
    const sidecar::Credentials& credentials) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const UniqueFd log{
        ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR)};
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    ::setenv("ROOT_ACCESS_KEY", credentials.access_key_id.c_str(), 1);
    ::setenv("ROOT_SECRET_KEY", credentials.secret_access_key.c_str(), 1);
    const std::string meta = folder / "meta";
    const std::string root = folder / "root";
    ::execl(
        program.c_str(),
        "versitygw",
        "--port",
        port.c_str(),
        "--keep-alive",
        "--quiet",
        "posix",
        "--sidecar",
        meta.c_str(),
        root.c_str(),
        nullptr);
    ::_exit(127);
}

}  // namespace

S3Gateway::S3Gateway(const std::string& program)
    : port_(free_port()) {
    std::string pattern = std::filesystem::temp_directory_path() / "stoker-gateway-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(folder_ / "root");
    std::filesystem::create_directory(folder_ / "meta");
    client_ = http::make_curl_client({}, clock_).value();
    child_ = ::fork();
    if (child_ == 0) {
        run_child(program, fmt::format("127.0.0.1:{}", port_), folder_, credentials_);
    }
    running_ = wait_until_it_answers();
}

S3Gateway::~S3Gateway() {
    if (child_ > 0) {
        ::kill(child_, SIGTERM);
        ::waitpid(child_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::string S3Gateway::endpoint() const {
    return fmt::format("http://127.0.0.1:{}", port_);
}

bool S3Gateway::wait_until_it_answers() {
    const auto end = std::chrono::steady_clock::now() + kStartMax;
    while (std::chrono::steady_clock::now() < end) {
        if (::waitpid(child_, nullptr, WNOHANG) == child_) {
            child_ = -1;
            return false;
        }
        http::HttpRequest request;
        request.url = endpoint() + "/";
        if (client_->call(std::move(request))) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    return false;
}

Status S3Gateway::make_bucket(const std::string& bucket) {
    return send("PUT", "/" + bucket, "");
}

Status S3Gateway::put(const std::string& bucket, const std::string& key, const std::string& bytes) {
    return send("PUT", "/" + bucket + "/" + sidecar::percent_encode(key, true), bytes);
}

Status S3Gateway::remove(const std::string& bucket, const std::string& key) {
    return send("DELETE", "/" + bucket + "/" + sidecar::percent_encode(key, true), "");
}

Status S3Gateway::send(
    const std::string& method, const std::string& path, const std::string& body) {
    sidecar::UnsignedRequest unsigned_request;
    unsigned_request.method = method;
    unsigned_request.path = path;
    unsigned_request.headers = {{"Host", fmt::format("127.0.0.1:{}", port_)}};
    unsigned_request.payload_hash = "UNSIGNED-PAYLOAD";
    http::HttpRequest request;
    request.method = method;
    request.url = endpoint() + path;
    request.body = body;
    request.headers = sidecar::sign(
        std::move(unsigned_request), {"us-east-1", "s3"}, credentials_, clock_.wall_now());
    STOKER_TRY(const auto response, client_->call(std::move(request)));
    if (response.status >= 300) {
        return fail(
            ErrorCode::kInternal,
            fmt::format("{} {}: {} {}", method, path, response.status, response.body));
    }
    return {};
}

}  // namespace stoker::test

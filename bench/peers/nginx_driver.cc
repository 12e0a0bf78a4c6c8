#include <charconv>
#include <vector>

#include <fmt/core.h>

#include "bench/peers/drivers.h"
#include "bench/peers/unix_stream.h"

namespace stoker::bench {

namespace {

constexpr std::string_view kLength = "Content-Length: ";

class NginxFiles final : public Driver {
public:
    NginxFiles(const std::string& socket_path, std::size_t count)
        : stream_(socket_path) {
        for (std::size_t i = 0; i < count; ++i) {
            requests_.push_back(
                fmt::format("GET /{} HTTP/1.1\r\nHost: bench\r\n\r\n", sample_key(i)));
        }
    }

    std::uint64_t read_batch(std::span<const std::uint64_t> ids) override {
        std::string requests;
        for (const std::uint64_t id : ids) {
            requests += requests_[id];
        }
        stream_.send(requests);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            sum += touch(stream_.read(read_head()));
        }
        return sum;
    }

private:
    // Reads an answer's head; returns the length of its body in bytes.
    std::size_t read_head() {
        std::size_t bytes = 0;
        const auto status = stream_.read_line();
        if (!status.starts_with("HTTP/1.1 200 ")) {
            die(fmt::format("nginx answered '{}'", status));
        }
        for (auto line = stream_.read_line(); !line.empty(); line = stream_.read_line()) {
            if (line.starts_with(kLength)) {
                const auto number = line.substr(kLength.size());
                std::from_chars(number.data(), number.data() + number.size(), bytes);
            }
        }
        return bytes;
    }

    UnixStream stream_;
    std::vector<std::string> requests_;  // by sample
};

}  // namespace

std::unique_ptr<Driver> nginx_files(const std::string& socket_path, std::size_t count) {
    return std::make_unique<NginxFiles>(socket_path, count);
}

}  // namespace stoker::bench

#include <charconv>
#include <vector>

#include <fmt/core.h>

#include "bench/peers/drivers.h"
#include "bench/peers/unix_stream.h"

namespace stoker::bench {

namespace {

constexpr std::string_view kEndOfValue = "\r\n";

// The number of bytes in "VALUE <key> <flags> <bytes>".
std::size_t value_bytes(std::string_view line) {
    std::size_t bytes = 0;
    const auto at = line.rfind(' ');
    if (!line.starts_with("VALUE ") || at == std::string_view::npos) {
        die(fmt::format("memcached answered '{}'", line));
    }
    std::from_chars(line.data() + at + 1, line.data() + line.size(), bytes);
    return bytes;
}

class MemcachedGets final : public Driver {
public:
    MemcachedGets(const std::string& socket_path, const Workload& workload)
        : stream_(socket_path) {
        store_samples(workload);
    }

    std::uint64_t read_batch(std::span<const std::uint64_t> ids) override {
        std::string request = "get";
        for (const std::uint64_t id : ids) {
            fmt::format_to(std::back_inserter(request), " {}", id);
        }
        stream_.send(request + "\r\n");
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const std::size_t bytes = value_bytes(stream_.read_line());
            sum += touch(stream_.read(bytes + kEndOfValue.size()).first(bytes));
        }
        expect("END");
        return sum;
    }

private:
    void store_samples(const Workload& workload) {
        const auto sizes = sample_sizes(workload);
        std::string value;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            value.resize(sizes[i]);
            fill_sample(i, std::as_writable_bytes(std::span{value}));
            stream_.send(fmt::format("set {} 0 0 {}\r\n", i, sizes[i]));
            stream_.send(value);
            stream_.send(kEndOfValue);
            expect("STORED");
        }
    }

    void expect(std::string_view wanted) {
        const auto line = stream_.read_line();
        if (line != wanted) {
            die(fmt::format("memcached answered '{}' instead of {}", line, wanted));
        }
    }

    UnixStream stream_;
};

}  // namespace

std::unique_ptr<Driver> memcached_gets(const std::string& socket_path, const Workload& workload) {
    return std::make_unique<MemcachedGets>(socket_path, workload);
}

}  // namespace stoker::bench

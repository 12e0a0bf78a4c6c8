#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/domain/ids.h"
#include "proto/local/protocol.h"

namespace stoker::test {

// A simple blocking client of the local protocol for tests: sends frames and reads samples from the
// node directory like the real client library, but slower. Every wait has a generous limit.
class SampleClient {
public:
    struct Answer {
        local::Message message;
        std::uint64_t request_id = 0;
    };

    explicit SampleClient(const std::string& socket_path);

    // Sends a Hello with or without a stream; fills `welcome()`. Skips kListing frames.
    Result<local::Welcome> hello(const local::Hello& hello);
    Result<local::Welcome> hello(const std::string& dataset, std::uint64_t stream = 0);

    [[nodiscard]] const local::Welcome& welcome() const { return welcome_; }

    // `ahead`: the beginning of the next epoch.
    Status plan(
        std::uint64_t epoch,
        const std::vector<std::uint64_t>& samples,
        std::uint64_t start = 0,
        const std::vector<std::uint64_t>& ahead = {});
    Result<local::Fetched> fetch(const std::vector<std::uint64_t>& samples);
    void consumed(std::uint64_t epoch, const std::vector<std::uint64_t>& samples);

    // The sample's bytes from the node directory; nullopt: a miss. kCorruption: wrong checksum.
    [[nodiscard]] Result<std::optional<std::vector<std::byte>>> read(std::uint64_t sample) const;

    // Reads a hit, or fetches and reads it. An error if the sidecar tells us to read the origin.
    Result<std::vector<std::byte>> get(std::uint64_t sample);

    // For protocol violations: raw frames and bytes.
    std::uint64_t send(const local::Message& message, int fd = -1);
    void send_bytes(const std::vector<std::byte>& bytes);

    // kUnavailable: the connection has ended. kDeadlineExceeded: no frame arrived.
    Result<Answer> receive();

    void close() { socket_.reset(); }

    [[nodiscard]] bool is_connected() const { return socket_.valid(); }

private:
    Result<std::vector<std::byte>> receive_bytes(std::size_t count);
    Result<Answer> answer_to(std::uint64_t request_id);

    UniqueFd socket_;
    local::Welcome welcome_;
    std::uint64_t last_request_ = 0;
};

// A memfd of these ids, sealed as kPlan requires.
UniqueFd sealed_ids(const std::vector<std::uint64_t>& samples);

}  // namespace stoker::test

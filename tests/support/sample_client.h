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

// A plain, blocking client of the local protocol, for tests: speaks frames and reads samples from
// the node directory as the real client library does, only without its speed. Every wait ends after
// a generous limit.
class SampleClient {
public:
    struct Answer {
        local::Message message;
        std::uint64_t request_id = 0;
    };

    explicit SampleClient(const std::string& socket_path);

    // The hello of a stream, or of none; fills `welcome()`. kListing frames are skipped.
    Result<local::Welcome> hello(const local::Hello& hello);
    Result<local::Welcome> hello(const std::string& dataset, std::uint64_t stream = 0);

    [[nodiscard]] const local::Welcome& welcome() const { return welcome_; }

    // `ahead`: with what the next epoch begins.
    Status plan(
        std::uint64_t epoch,
        const std::vector<std::uint64_t>& samples,
        std::uint64_t start = 0,
        const std::vector<std::uint64_t>& ahead = {});
    Result<local::Fetched> fetch(const std::vector<std::uint64_t>& samples);
    void consumed(std::uint64_t epoch, const std::vector<std::uint64_t>& samples);

    // The sample's bytes from the node directory; nullopt: a miss. kCorruption: its checksum is
    // wrong.
    [[nodiscard]] Result<std::optional<std::vector<std::byte>>> read(std::uint64_t sample) const;

    // Hit, or fetch and hit. An error when the sidecar sends us to the origin.
    Result<std::vector<std::byte>> get(std::uint64_t sample);

    // For misbehaving: raw frames and bytes.
    std::uint64_t send(const local::Message& message, int fd = -1);
    void send_bytes(const std::vector<std::byte>& bytes);

    // kUnavailable: the connection has ended. kDeadlineExceeded: nothing came.
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

// A memfd of these ids, sealed as kPlan wants it.
UniqueFd sealed_ids(const std::vector<std::uint64_t>& samples);

}  // namespace stoker::test

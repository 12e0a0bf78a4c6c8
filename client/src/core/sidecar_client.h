#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/protocol.h"

namespace stoker::client {

// One connection of one process to its sidecar (proto/local/protocol.h). Blocking with deadlines.
// Not thread-safe.
//
// After an error that leaves the stream's state unknown (deadline, hang-up, invalid bytes) the
// connection is closed: is_usable() is false, and the owner makes a new one after its back-off. In
// a forked child is_usable() is false, and the parent's connection keeps working.
class SidecarClient {
public:
    // Called when a signal interrupts a wait; true cancels the wait with kCancelled.
    using Interrupted = std::function<bool()>;

    // Connects and sends the Hello. `clock` must outlive the client. kUnavailable: no listener.
    // kForbidden, kDeadlineExceeded; kInvalidArgument: not a socket path.
    static Result<SidecarClient> connect(
        const std::string& socket_path,
        const local::Hello& hello,
        const Clock& clock,
        TimePoint deadline,
        Interrupted interrupted = nullptr);

    // Whether await_welcome() would not wait, because an answer has arrived or the sidecar has hung
    // up.
    [[nodiscard]] bool has_answer() const;

    // The next answer to the Hello: a Listing while the manifest is being made (call again), then
    // the Welcome. The sidecar's ErrorReply is returned as that Error and ends the connection.
    Result<std::variant<local::Welcome, local::Listing>> await_welcome(TimePoint deadline);

    // Requests the samples and waits for all answers; one status for each, in order.
    Result<local::Fetched> fetch(std::span<const std::uint64_t> samples, TimePoint deadline);

    // Sends the ids in this stream's read order through a sealed memfd. `ahead`: the first ids of
    // the next epoch, if the Welcome has kFeatureAhead; at most kAheadSamplesMax are sent.
    Status send_plan(
        std::uint64_t epoch,
        std::span<const std::uint64_t> samples,
        std::uint64_t start,
        std::span<const std::uint64_t> ahead,
        TimePoint deadline);

    // Begins an epoch under a sampling contract; `served` and `snapshot` as in local::Begin, or
    // empty. Sets `begin.served_bytes` and `begin.snapshot_bytes`.
    // kInvalidArgument: the sidecar does not know the contract or one of its parameters.
    Result<local::Begun> begin(
        local::Begin begin,
        std::span<const std::byte> served,
        std::span<const std::byte> snapshot,
        TimePoint deadline);

    // Draws the next samples of the current epoch.
    Result<local::Drawn> draw(std::uint64_t epoch, std::uint32_t count, TimePoint deadline);

    Result<local::EpochTally> tally(std::uint64_t epoch, TimePoint deadline);
    Result<local::Snapshot> snapshot(TimePoint deadline);

    // Asks whether to measure the cache's benefit (local::Probe); needs a sidecar with kFeatureProbe.
    Result<local::Probe> ask_probe(TimePoint deadline);

    // One-way frames. They never wait: false means that the sidecar is behind and the frame was not
    // sent. Losses and fingerprints take as many frames as needed; the spans have equal length.
    // `p_others`, see local::Losses, may be empty.
    Result<bool> send_consumed(std::uint64_t epoch, std::span<const std::uint64_t> samples);
    Result<bool> send_report(const local::Report& report);
    Result<bool> send_probed(const local::Probed& probed);
    Result<bool> send_losses(
        std::uint64_t epoch,
        std::span<const std::uint64_t> samples,
        std::span<const float> losses,
        std::span<const float> p_others);
    Result<bool> send_similarity(
        std::span<const std::uint64_t> samples, std::span<const std::uint64_t> hashes);

    [[nodiscard]] bool is_usable() const;

private:
    SidecarClient(UniqueFd socket, const Clock& clock, Interrupted interrupted);

    Status send_all(std::span<const std::byte> bytes, TimePoint deadline, int passed_fd = -1);
    Result<bool> send_now(const local::Message& message);
    template <class Make>
    Result<bool> send_in_frames(std::size_t count, Make make);
    template <class Answer>
    Result<Answer> ask(const local::Message& message, TimePoint deadline, int passed_fd = -1);
    Result<local::Message> request(
        const local::Message& message, TimePoint deadline, int passed_fd = -1);
    Result<local::Message> receive(
        TimePoint deadline, std::optional<std::uint64_t> request_id = std::nullopt);
    Status receive_all(std::span<std::byte> out, TimePoint deadline);
    Result<bool> flush_now();
    Status wait_for(short events, TimePoint deadline);
    tl::unexpected<Error> close_with(Error error);

    UniqueFd socket_;
    const Clock* clock_;
    Interrupted interrupted_;
    std::uint32_t forks_;  // number of forks up to the process that connected
    std::uint64_t next_request_id_ = 1;
    std::vector<std::byte> unsent_;  // rest of a partly sent one-way frame
};

}  // namespace stoker::client

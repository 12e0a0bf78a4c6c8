#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "proto/local/protocol.h"

namespace stoker::client {

// One connection of one process to its sidecar (proto/local/protocol.h). Blocking with deadlines.
// Not thread-safe.
//
// After an error that leaves the stream in doubt (deadline, hang-up, garbage) the connection is
// closed: is_usable() is false and the owner makes a new one when its back-off says so. A fork
// copies the object but not the right to use it: in the child is_usable() is false, and the
// parent's connection is not disturbed.
class SidecarClient {
public:
    // Asked when a signal interrupts a wait; true gives it up with kCancelled.
    using Interrupted = std::function<bool()>;

    // Connects and sends the Hello. `clock` must outlive the client. kUnavailable: nobody listens
    // there. kForbidden, kDeadlineExceeded; kInvalidArgument: not a path for a socket.
    static Result<SidecarClient> connect(
        const std::string& socket_path,
        const local::Hello& hello,
        const Clock& clock,
        TimePoint deadline,
        Interrupted interrupted = nullptr);

    // Whether await_welcome() has something to read, so that it will not wait; true too when the
    // sidecar has hung up.
    [[nodiscard]] bool has_answer() const;

    // The next word about the Hello: a Listing while the manifest is being made (wait again), then
    // the Welcome. An ErrorReply of the sidecar comes back as that Error and ends the connection.
    Result<std::variant<local::Welcome, local::Listing>> await_welcome(TimePoint deadline);

    // Asks for the samples and waits until all have an answer; one status for each, in order.
    Result<local::Fetched> fetch(std::span<const std::uint64_t> samples, TimePoint deadline);

    // Hands over the ids in the order in which this stream will read them, through a sealed memfd.
    // `ahead`: those with which the next epoch begins, where the Welcome has kFeatureAhead; at most
    // kAheadSamplesMax of them are said.
    Status send_plan(
        std::uint64_t epoch,
        std::span<const std::uint64_t> samples,
        std::uint64_t start,
        std::span<const std::uint64_t> ahead,
        TimePoint deadline);

    // Begins an epoch under a sampling contract, after `served` (a bitmap as local::Begin says) was
    // had already; `snapshot` may be empty. The two sizes in `begin` are filled in here.
    // kInvalidArgument: the sidecar does not know the contract, or a parameter of it.
    Result<local::Begun> begin(
        local::Begin begin,
        std::span<const std::byte> served,
        std::span<const std::byte> snapshot,
        TimePoint deadline);

    // The next samples of the epoch that was begun.
    Result<local::Drawn> draw(std::uint64_t epoch, std::uint32_t count, TimePoint deadline);

    Result<local::EpochTally> tally(std::uint64_t epoch, TimePoint deadline);
    Result<local::Snapshot> snapshot(TimePoint deadline);

    // Whether there is something to measure; a sidecar with kFeatureProbe knows.
    Result<local::Probe> ask_probe(TimePoint deadline);

    // One-way frames. They never wait: false means that the sidecar is behind and the frame was not
    // sent. Losses and fingerprints take as many frames as they need; both spans are equally long.
    Result<bool> send_consumed(std::uint64_t epoch, std::span<const std::uint64_t> samples);
    Result<bool> send_report(const local::Report& report);
    Result<bool> send_probed(const local::Probed& probed);
    Result<bool> send_losses(
        std::uint64_t epoch, std::span<const std::uint64_t> samples, std::span<const float> losses);
    Result<bool> send_similarity(
        std::span<const std::uint64_t> samples, std::span<const std::uint64_t> hashes);

    [[nodiscard]] bool is_usable() const;

private:
    SidecarClient(UniqueFd socket, const Clock& clock, Interrupted interrupted);

    Status send_all(std::span<const std::byte> bytes, TimePoint deadline, int passed_fd = -1);
    Result<bool> send_now(const local::Message& message);
    template <class Value, class Make>
    Result<bool> send_in_frames(
        std::span<const std::uint64_t> samples, std::span<const Value> values, Make make);
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
    pid_t pid_;
    std::uint64_t next_request_id_ = 1;
    std::vector<std::byte> unsent_;  // the tail of a one-way frame that the socket took in part
};

}  // namespace stoker::client

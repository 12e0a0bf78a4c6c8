#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/base/unique_fd.h"
#include "sidecar/service/frame_socket.h"

namespace stoker::sidecar {

// Keeps what a new leader must know of one client: its unanswered requests, and its plan with the
// samples read of it, or its epoch under a contract with its draws. Memory is bounded whatever the
// client sends: 8 bytes per position of the plan, kPendingBytesMax of unanswered requests.
class ReplayLog {
public:
    static constexpr std::size_t kPendingBytesMax = std::size_t{4} << 20U;

    // Number of samples in the dataset. Until it is set, no reads are remembered.
    void set_sample_count(std::uint64_t count) { sample_count_ = count; }

    [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }

    // Remembers the parts of a client's frame that replay() needs; ignores other frames.
    void on_request(const Frame& frame);

    // Removes the answered request.
    void on_answer(const Frame& frame);

    // Frames that tell a new leader the client's state. The plan begins after the first gap-free
    // run of read positions, so that these are not prefetched again. Samples read beyond the gap
    // follow as kConsumed, in several frames; the sender waits between two frames while the peer is
    // behind. `ahead`: the leader accepts a plan that includes the beginning of the next epoch.
    // Reads the plan's memfd.
    [[nodiscard]] std::deque<Frame> replay(bool ahead = true) const;

    // Whether the client reads under a contract.
    [[nodiscard]] bool has_begun() const { return begin() != nullptr; }

    // Whether there are more unanswered requests than a client needs.
    [[nodiscard]] bool is_full() const { return pending_bytes_ > kPendingBytesMax; }

    // An unanswered request; nullptr: there is none with this id.
    [[nodiscard]] const local::Message* pending(std::uint64_t request_id) const {
        const auto found = pending_.find(request_id);
        return found == pending_.end() ? nullptr : &found->second;
    }

    // Removes and returns the unanswered requests; a plan or a begin stays.
    std::vector<Frame> take_pending();

    // Whether this answers a replayed plan or begin that was answered before.
    [[nodiscard]] bool is_repeated(std::uint64_t request_id) const;

private:
    // The client's last plan or begin; each replaces the other.
    struct Said {
        Frame frame;
        bool answered = false;
        std::vector<std::byte> drawn{};  // of a begin, encoded as local::Begin's served
        std::uint64_t draws = 0;
    };

    [[nodiscard]] const local::Plan* plan() const {
        return said_ ? std::get_if<local::Plan>(&said_->frame.message) : nullptr;
    }

    [[nodiscard]] const local::Begin* begin() const {
        return said_ ? std::get_if<local::Begin>(&said_->frame.message) : nullptr;
    }

    void note_consumed(const local::Consumed& consumed);
    void note_drawn(const local::Drawn& drawn);
    void forget_pending(std::uint64_t request_id);
    [[nodiscard]] Frame begin_again() const;
    std::vector<std::uint64_t> skip_read(local::Plan& plan) const;

    std::uint64_t sample_count_ = 0;
    std::optional<Said> said_;
    std::vector<std::uint64_t> consumed_;              // valid ids, read in the plan's epoch
    std::map<std::uint64_t, local::Message> pending_;  // by request id
    std::size_t pending_bytes_ = 0;
};

}  // namespace stoker::sidecar

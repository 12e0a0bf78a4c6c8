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

// Keeps what a new leader must be told to know about one client what the old one knew: its
// plan, what it has read of it, or the epoch that it draws under a contract and what it was given
// of that; and what it waits for. Bounded whatever the client says: 8 bytes a position of the plan,
// kPendingBytesMax of requests without an answer.
class ReplayLog {
public:
    static constexpr std::size_t kPendingBytesMax = std::size_t{4} << 20U;

    // Samples of the dataset; before that nothing is remembered as read.
    void set_sample_count(std::uint64_t count) { sample_count_ = count; }

    [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }

    // Remembers what matters of a client's frame; anything else passes.
    void on_request(const Frame& frame);

    // The answer to a request has come.
    void on_answer(const Frame& frame);

    // The plan starts behind the positions that were read without a gap, so that nobody prefetches
    // them again; what was read beyond follows as kConsumed, in pieces: whoever sends them waits
    // between two while the peer is behind. `ahead`: the leader takes a plan with the beginning of
    // the next epoch. Reads the plan's memfd.
    [[nodiscard]] std::deque<Frame> replay(bool ahead = true) const;

    // Does the client read under a contract?
    [[nodiscard]] bool has_begun() const { return begin() != nullptr; }

    // Are there more requests without an answer than a client needs?
    [[nodiscard]] bool is_full() const { return pending_bytes_ > kPendingBytesMax; }

    // A request without an answer; nullptr: there is none of this id.
    [[nodiscard]] const local::Message* pending(std::uint64_t request_id) const {
        const auto found = pending_.find(request_id);
        return found == pending_.end() ? nullptr : &found->second;
    }

    // The requests without an answer, which are forgotten; a plan or a begin stays.
    std::vector<Frame> take_pending();

    // Is this the answer to a plan or a begin that was answered before and is only being repeated?
    [[nodiscard]] bool is_repeated(std::uint64_t request_id) const;

private:
    // The client's last plan or begin; each ends the other.
    struct Said {
        Frame frame;
        bool answered = false;
        std::vector<std::byte> drawn{};  // of a begin, as local::Begin's served
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
    std::vector<std::uint64_t> consumed_;              // of the plan's epoch, ids that exist
    std::map<std::uint64_t, local::Message> pending_;  // by request id
    std::size_t pending_bytes_ = 0;
};

}  // namespace stoker::sidecar

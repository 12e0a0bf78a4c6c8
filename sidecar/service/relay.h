#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

// What a new leader has to be told so that it knows what the old one knew about one client: its
// plan, what it has read of it, or the epoch that it draws under a contract and what it was given
// of that; and what it waits for. Grows by 8 bytes a sample read, until the next plan.
class ReplayLog {
public:
    // Of the dataset; before that no epoch is remembered.
    void set_sample_count(std::uint64_t count) { sample_count_ = count; }

    [[nodiscard]] std::uint64_t sample_count() const { return sample_count_; }

    // Remembers what matters of a client's frame; anything else passes.
    void on_request(const Frame& frame);

    // The answer to a request has come.
    void on_answer(const Frame& frame);

    struct Recorded {
        std::vector<std::byte> bytes;
        UniqueFd fd;
    };

    // In the order in which to send them, after the hello. The plan starts behind the positions
    // that were read without a gap, so that nobody prefetches them again; what was read beyond
    // follows as kConsumed. `ahead`: the leader takes a plan with the beginning of the next epoch.
    [[nodiscard]] std::vector<Recorded> frames(bool ahead = true) const;

    // Is this the answer to a plan or a begin that was answered before and is only being repeated?
    [[nodiscard]] bool is_repeated(std::uint64_t request_id) const;

private:
    struct RecordedPlan {
        local::Plan plan;
        std::uint64_t request_id = 0;
        UniqueFd memfd;
        bool answered = false;
    };

    struct RecordedBegin {
        local::Begin begin;
        std::uint64_t request_id = 0;
        UniqueFd memfd;
        bool answered = false;
        std::vector<std::byte> drawn{};  // as local::Begin's served
        std::uint64_t draws = 0;
    };

    void note_drawn(const local::Drawn& drawn);
    [[nodiscard]] Recorded begin_again() const;

    std::uint64_t sample_count_ = 0;
    std::optional<RecordedPlan> plan_;
    std::optional<RecordedBegin> begin_;
    std::vector<std::uint64_t> consumed_;                      // of the plan's epoch
    std::map<std::uint64_t, std::vector<std::byte>> pending_;  // by request id
};

// Carries one session of a follower to the leader and back, over a connection of its own. After the
// leader's death it is connected again, to whoever leads then, and says again what the log holds;
// the client notices nothing but a pause. Belongs to the loop's thread.
class Relay {
public:
    // `on_lost`: the leader's end is gone. Called from callbacks of our socket, as `listener` is:
    // do not destroy the relay in it.
    Relay(
        EventLoop& loop,
        Session& session,
        std::string client_directory,
        ReadingListener& listener,
        std::function<void()> on_lost);
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    // kUnavailable: nobody leads there now.
    Status connect(const std::string& leader_socket);

    [[nodiscard]] bool is_connected() const { return upstream_ != nullptr && upstream_->is_open(); }

    // From the client. Waits in the log while there is no leader.
    void on_request(Frame frame);

    [[nodiscard]] Session& session() { return session_; }

    // The client has hung up: its session is not used any more. `on_parted` is called once, when
    // the leader has counted what the client had said to be read, or is gone.
    void part(std::function<void()> on_parted);

    // Has a leader ever answered? Then its revision is in use.
    [[nodiscard]] bool is_welcomed() const { return revision_.has_value(); }

    // Of that revision; 0: not welcomed yet.
    [[nodiscard]] std::uint64_t sample_count() const { return log_.sample_count(); }

private:
    void on_answer(const Frame& frame);
    void on_drawn(const Frame& frame);
    void on_counted(const Frame& frame);
    void end_parting();
    void on_welcome(const Frame& frame);
    void say_again();
    static void trim_plan(Frame& frame);

    EventLoop& loop_;
    Session& session_;
    std::string client_directory_;
    ReadingListener& listener_;
    std::function<void()> on_lost_;
    std::unique_ptr<FrameSocket> upstream_;
    std::optional<std::uint64_t> revision_;
    bool ready_ = false;               // welcomed on the present connection
    bool counts_ = false;              // the leader there answers kConsumed
    bool ahead_ = false;               // it takes plans with the beginning of the next epoch
    std::uint64_t uncounted_ = 0;      // such answers that are owed
    std::function<void()> on_parted_;  // set: the client has hung up
    ReplayLog log_;
};

}  // namespace stoker::sidecar

#include "common/http/blocking_client.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <iterator>
#include <optional>
#include <utility>

#include <pthread.h>

#include "common/base/check.h"
#include "common/http/curl_call.h"

namespace stoker::http {

namespace {

constexpr Duration kPollMax = std::chrono::minutes{1};
constexpr Duration kIdleMax = std::chrono::seconds{60};

// Blocks SIGPIPE on this thread, and discards a SIGPIPE that was raised meanwhile: a closed TLS
// connection must not end the process.
class SigpipeBlock {
public:
    SigpipeBlock() {
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }

    ~SigpipeBlock() {
        const timespec at_once{};
        if (!was_pending_) {
            sigtimedwait(&pipe_, nullptr, &at_once);
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    SigpipeBlock(const SigpipeBlock&) = delete;
    SigpipeBlock& operator=(const SigpipeBlock&) = delete;

private:
    sigset_t pipe_{};
    sigset_t before_{};
    bool was_pending_ = false;
};

void check(CURLMcode code) {
    STOKER_CHECK(code == CURLM_OK, curl_multi_strerror(code));
}

// The result of the one transfer in `multi`; nullopt while it runs.
std::optional<CURLcode> result_of(CURLM* multi) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
        if (message->msg == CURLMSG_DONE) {
            return message->data.result;
        }
    }
    return std::nullopt;
}

}  // namespace

struct BlockingClient::Lane {
    Lane() {
        STOKER_CHECK(multi != nullptr && easy != nullptr, "not enough memory for a curl handle");
        curl_multi_setopt(multi.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, 1L);
    }

    CurlMulti multi{curl_multi_init()};  // destroyed after the handle
    CurlEasy easy{curl_easy_init()};
    TimePoint used_at{};
};

Result<std::unique_ptr<BlockingClient>> BlockingClient::make(
    ClientOptions options, const Clock& clock) {
    STOKER_TRY(options, ready_options(std::move(options)));
    return std::unique_ptr<BlockingClient>{new BlockingClient(std::move(options), clock)};
}

BlockingClient::BlockingClient(ClientOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(&clock) {}

BlockingClient::~BlockingClient() = default;

Status BlockingClient::call(HttpRequest request, HttpSink sink, const std::stop_token& stop) {
    const SigpipeBlock no_sigpipe;
    // Destroyed in reverse order: first the call, then the lane whose handle the call may hold, and
    // last the turn, which lets the next call begin.
    Turn turn;
    std::unique_ptr<Lane> lane;
    CurlCall call{CallId{}, std::move(request), std::move(sink), options_, *clock_};
    STOKER_TRY(turn, take_turn(call, stop));
    lane = take_lane();
    Status status = transfer(*lane, call, stop);
    curl_multi_remove_handle(lane->multi.get(), call.easy());
    lane->easy = call.release_easy();
    curl_easy_reset(lane->easy.get());
    keep(std::move(lane));
    return status;
}

Result<BlockingClient::Turn> BlockingClient::take_turn(
    const CurlCall& call, const std::stop_token& stop) {
    std::condition_variable_any woken;
    std::unique_lock lock(mutex_);
    const auto is_our_turn = [&] {
        const bool is_free = options_.connections_max == 0 || in_use_ < options_.connections_max;
        return is_free && waiting_.front() == &woken;
    };
    const auto leave = [&](void* /*guard*/) {  // under the lock, which is released later
        std::erase(waiting_, &woken);
        wake_next();
    };
    waiting_.push_back(&woken);
    const std::unique_ptr<void, decltype(leave)> leave_at_the_end{&woken, leave};
    while (!is_our_turn()) {
        const TimePoint now = clock_->now();
        if (stop.stop_requested()) {
            return fail(ErrorCode::kCancelled, "cancelled");
        }
        if (now >= call.deadline()) {
            return fail(call.expiry(now));
        }
        woken.wait_for(lock, stop, std::min(call.deadline() - now, kPollMax), is_our_turn);
    }
    ++in_use_;
    return Turn{this};
}

void BlockingClient::EndTurn::operator()(BlockingClient* client) const {
    const std::lock_guard lock(client->mutex_);
    --client->in_use_;
    client->wake_next();
}

std::unique_ptr<BlockingClient::Lane> BlockingClient::take_lane() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto lane = std::move(idle_.back());
            idle_.pop_back();
            return lane;
        }
    }
    return std::make_unique<Lane>();
}

void BlockingClient::wake_next() {
    if (!waiting_.empty()) {
        waiting_.front()->notify_one();
    }
}

void BlockingClient::keep(std::unique_ptr<Lane> lane) {
    std::vector<std::unique_ptr<Lane>> stale;  // closed after the lock is released
    const TimePoint now = lane->used_at = clock_->now();
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(lane));
    stale.reserve(idle_.size());
    const auto fresh = std::ranges::find_if(
        idle_, [&](const auto& one) { return now - one->used_at <= kIdleMax; });
    std::move(idle_.begin(), fresh, std::back_inserter(stale));
    idle_.erase(idle_.begin(), fresh);
}

Status BlockingClient::transfer(Lane& lane, CurlCall& call, const std::stop_token& stop) {
    CURLM* multi = lane.multi.get();
    STOKER_TRY_VOID(call.prepare(std::move(lane.easy), false));
    if (const TimePoint now = clock_->now(); now >= call.deadline()) {
        return fail(call.expiry(now));  // the time limit ended in the queue: nothing is sent
    }
    check(curl_multi_add_handle(multi, call.easy()));
    const std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });
    while (!stop.stop_requested()) {
        int running = 0;
        check(curl_multi_perform(multi, &running));
        if (const auto code = result_of(multi)) {
            if (!call.may_restart(*code)) {
                return call.outcome(*code);
            }
            curl_multi_remove_handle(multi, call.easy());
            STOKER_TRY_VOID(call.prepare(call.release_easy(), true));
            check(curl_multi_add_handle(multi, call.easy()));
            continue;
        }
        const TimePoint now = clock_->now();
        if (now >= call.deadline()) {
            return fail(call.expiry(now));
        }
        const auto wait =
            std::chrono::ceil<std::chrono::milliseconds>(std::min(call.deadline() - now, kPollMax));
        curl_multi_poll(multi, nullptr, 0, static_cast<int>(wait.count()), nullptr);
    }
    return fail(ErrorCode::kCancelled, "cancelled");
}

}  // namespace stoker::http

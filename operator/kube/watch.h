#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "common/base/result.h"
#include "operator/kube/back_off.h"
#include "operator/kube/list_page.h"
#include "operator/kube/object.h"
#include "operator/kube/request.h"
#include "operator/kube/status_error.h"
#include "operator/kube/transport.h"

namespace stoker::control {

// Splits a stream at newlines, whatever the sizes of the pieces: a watch sends one JSON object per
// line. Text after the last newline waits for more; if none comes, the object was cut and is
// useless. Memory is bounded by the longest allowed line plus one piece. Not thread-safe.
class LineSplitter {
public:
    static constexpr std::size_t kLineBytesMax = std::size_t{16} * 1024 * 1024;

    explicit LineSplitter(std::size_t line_bytes_max = kLineBytesMax)
        : line_bytes_max_(line_bytes_max) {}

    // Adds a piece. Read all lines with next() before the next push().
    void push(std::string_view piece) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
        buffer_ += piece;
    }

    // The next complete line without its end, skipping empty lines; nullopt if more input is needed
    // or after overflow. The view is valid until the next call of push().
    std::optional<std::string_view> next() {
        while (!overflowed_) {
            const std::size_t end = buffer_.find('\n', scanned_);
            if (end == std::string::npos) {
                scanned_ = buffer_.size();
                overflowed_ = scanned_ - begin_ > line_bytes_max_;
                return std::nullopt;
            }
            const std::string_view line(buffer_.data() + begin_, end - begin_);
            begin_ = scanned_ = end + 1;
            overflowed_ = line.size() > line_bytes_max_;
            if (!line.empty() && !overflowed_) {
                return line;
            }
        }
        return std::nullopt;
    }

    // True after a line beyond the limit; the stream cannot be read further.
    [[nodiscard]] bool overflowed() const { return overflowed_; }

    // Bytes of an incomplete line.
    [[nodiscard]] std::size_t pending() const { return buffer_.size() - begin_; }

private:
    std::size_t line_bytes_max_;
    std::string buffer_;
    std::size_t begin_ = 0;    // of the current line
    std::size_t scanned_ = 0;  // no '\n' in [begin_, scanned_)
    bool overflowed_ = false;
};

struct WatchOptions {
    ResourceKind kind;
    Scope scope{};
    std::uint32_t page_size = 500;
    // Every watch requests a random time in this range. Lower the upper limit if a load balancer
    // cuts connections earlier.
    std::uint32_t watch_seconds_min = 300;
    std::uint32_t watch_seconds_max = 600;
    Duration watch_grace =
        std::chrono::seconds{30};  // a watch this long past its time is considered dead
    Duration list_time_limit = std::chrono::seconds{60};
    Duration internal_error_bound =
        std::chrono::seconds{30};  // re-watch for this long through ERROR 500, then list
    std::size_t line_bytes_max = LineSplitter::kLineBytesMax;
    BackOff::Options back_off{};
    bool may_be_missing = false;  // true: the server may not have the kind
    // Called with each object right after parsing, so that a list is never in memory as JSON as a
    // whole: may convert `raw` to `value` and empty `raw`. It runs before the rest of the list is
    // parsed. Empty: objects stay unchanged.
    std::function<void(Object& object)> transform{};
};

// Changes of the server's state. Apply them in order.
struct Replaced {  // the complete list; other objects are gone
    std::vector<Object> objects;
    std::string resource_version;
};

struct Upserted {
    Object object;
};

struct Removed {  // the last state, with the resource version of the deletion
    Object object;
};

struct Bookmarked {  // nothing changed up to here
    std::string resource_version;
};

// An error for logs and counters; it changes no object, and the machine has decided its next step.
struct Troubled {
    Error error;
    bool lists_again = false;
};

using WatchEvent = std::variant<Replaced, Upserted, Removed, Bookmarked, Troubled>;
using WatchEvents = std::vector<WatchEvent>;

// The next step: wait, or send this request and report its result.
struct WaitUntil {
    TimePoint at;
};

struct SendRequest {
    ApiRequest request;
    // True: a watch, report through on_open/on_bytes/on_end. False: a list, report through
    // on_response, or in pieces through on_list_open/on_list_bytes/on_list_end.
    bool stream = false;
    Duration time_limit{};
};

using WatchStep = std::variant<WaitUntil, SendRequest>;

// List, then watch, for ever: the rules of client-go's reflector as a machine without I/O. The
// caller executes next_step() and reports the results; the returned events keep a copy equal to the
// server's state.
//
//   Empty      nothing is known to be current
//              -> Listing
//   Listing    pages of a list are coming
//              all are there                         -> Listed
//              410, or a resource version ahead of
//              the server's                          once more at once, fresh by quorum
//              410 on a later page                   once more at once, unpaged
//              any other failure                     back off -> Empty
//   Listed     the copy is as of resource_version()
//              -> Watching
//   Watching   changes are coming
//              the stream ends                       -> Listed at once
//              it ends within a second, no events    back off -> Empty
//              no answer, or 429                     back off -> Listed, without listing
//              any other refusal, 410 above all,
//              something unreadable, disorder        back off -> Empty
//
// Differences from client-go: after a watch without any response, the machine opens the next one
// without a list, whatever the reason (a missing response proves nothing about our resource
// version); and a resource version that decreases within one watch leads to a list, so that no
// reordering can lose an update.
//
// Pure except for its own generator. Not thread-safe.
class WatchMachine {
public:
    WatchMachine(WatchOptions options, std::uint64_t seed);

    // In Watching with an open stream there is no next step: report the stream first.
    WatchStep next_step(TimePoint now);

    // The complete response to a list, or a response other than 200 to a watch.
    WatchEvents on_response(const ApiResponse& response, TimePoint now);
    // The response to a list with status 200, in pieces, so that it is never in memory as a whole.
    // If it is cut, report on_failure() instead of the end; its objects do not count then.
    void on_list_open();
    // False: it cannot be read; close the stream and report the end.
    bool on_list_bytes(std::string_view bytes);
    WatchEvents on_list_end(TimePoint now);
    // No response to the request: refused, cut, timed out.
    WatchEvents on_failure(const Error& error, TimePoint now);
    // The watch was accepted with status 200.
    void on_open(TimePoint now);
    // The next bytes of the watch, cut anywhere. If streaming() is false afterwards, close the
    // stream; do not report its end.
    WatchEvents on_bytes(std::string_view bytes, TimePoint now);
    // The stream ended, for any reason.
    WatchEvents on_end(TimePoint now);

    // Whether a watch is open or being opened.
    [[nodiscard]] bool streaming() const { return std::holds_alternative<Watching>(state_); }

    // The copy is current up to this version; "" before the first list.
    [[nodiscard]] const std::string& resource_version() const { return last_version_; }

    [[nodiscard]] const WatchOptions& options() const { return options_; }

private:
    struct Empty {};

    struct Listing {
        std::string asked_version;
        bool paged = true;
        std::string continue_token{};
        std::string list_version{};
        std::vector<Object> objects{};
        std::unique_ptr<ListReader> page{};  // of the page that arrives
        WatchEvents troubles{};              // of that page
    };

    struct Listed {};

    struct Watching {
        TimePoint opened{};
        std::uint64_t events = 0;
        bool synthetic = false;  // opened without a version: the first ADDEDs come in no order
        LineSplitter lines;
    };

    Listing start_list() const;
    SendRequest list_step(const Listing& list) const;
    SendRequest watch_step();
    void take_item(web::json::value&& item);
    WatchEvents on_list_refused(const ApiFailure& failure, TimePoint now);
    WatchEvents on_watch_refused(const ApiFailure& failure, TimePoint now);
    void on_line(const std::string& line, TimePoint now, WatchEvents& events);
    void on_change(
        std::string_view type, web::json::value&& raw, TimePoint now, WatchEvents& events);
    void on_bookmark(const web::json::value& raw, TimePoint now, WatchEvents& events);
    bool note_version(const std::string& version, bool added, TimePoint now, WatchEvents& events);
    [[nodiscard]] std::optional<Object> read_item(web::json::value&& raw) const;

    void back_off(TimePoint now, std::optional<Duration> at_least = {});
    Troubled list_again(Error error, TimePoint now);
    Troubled watch_again(Error error, TimePoint now, std::optional<Duration> at_least = {});

    WatchOptions options_;
    Prng prng_;
    BackOff back_off_;
    std::variant<Empty, Listing, Listed, Watching> state_;
    std::string last_version_;
    bool version_unavailable_ =
        false;                // the server lacks last_version_: the next list asks for the newest
    bool paginated_ = false;  // a list at "0" came in pages: the server has no cache to ask
    TimePoint not_before_{};
    std::optional<TimePoint> internal_errors_since_;
};

// Drives one WatchMachine over a transport. The thread that calls run() reads the socket and applies
// each event directly, so no events queue between server and store: the server may cut off a slow
// consumer for its speed, but not for its memory.
//
// Call run(), or next_step() and the functions after it, never both. Not thread-safe.
class WatchLoop {
public:
    // Called for each event in order, one at a time, on the caller's thread: that of run(), or of
    // answered(), received() and ended().
    using Apply = std::function<void(WatchEvent&& event)>;

    // `transport` and `clock` must outlive it.
    WatchLoop(
        ApiTransport& transport,
        WatchOptions options,
        Apply apply,
        const Clock& clock,
        std::uint64_t seed);

    // Lists and watches until a stop is requested.
    void run(const std::stop_token& stop);

    // As run(), without a transport: the caller carries out each step and reports its result, as
    // WatchMachine describes.
    WatchStep next_step() { return machine_.next_step(clock_->now()); }

    // The response to a list, or a refused watch; an error: there was none.
    void answered(const Result<ApiResponse>& response);

    void opened() { machine_.on_open(clock_->now()); }

    // False: the machine has left this watch; close the stream. ended() then changes nothing.
    bool received(std::string_view bytes);

    void ended() { deliver(machine_.on_end(clock_->now())); }

private:
    void list(const SendRequest& send, const std::stop_token& stop);
    void watch(const SendRequest& send, const std::stop_token& stop);
    void deliver(WatchEvents events);

    ApiTransport* transport_;
    WatchMachine machine_;
    Apply apply_;
    const Clock* clock_;
};

}  // namespace stoker::control

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>

#include "common/base/prng.h"
#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"
#include "tests/support/manual_clock.h"

namespace stoker::world {

class Program;

inline double seconds_of(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

// Virtual time on one thread: runs the world's events and the loops of its programs in the order of
// their times. A loop that becomes ready runs after a delay from the seed, so that two seeds
// order the same messages differently. Equal seeds give equal runs. While it lives, lines that programs
// log go to its log. Not thread-safe; only one Schedule at a time.
class Schedule {
public:
    using Task = std::function<void()>;

    explicit Schedule(std::uint64_t seed);
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;
    ~Schedule();

    [[nodiscard]] const Clock& clock() const { return clock_; }

    [[nodiscard]] TimePoint now() const { return clock_.now(); }

    [[nodiscard]] Duration passed() const { return now() - testing::ManualClock::kStart; }

    // The main random source of the world.
    [[nodiscard]] Prng& luck() { return luck_; }

    // Uniform in [least, most].
    Duration draw(Duration least, Duration most);

    // Log-uniform in [least, most]; `least` must be at least 1 ns.
    Duration draw_scale(Duration least, Duration most);

    [[nodiscard]] bool draw_chance(double probability) { return luck_.unit() < probability; }

    void run_in(Duration delay, Task task);

    // Runs the next event or loop that is due before `end`. False: there is none; the clock then
    // shows `end`.
    bool step(TimePoint end);

    [[nodiscard]] std::uint64_t steps() const { return steps_; }

    // Limits the delay of a ready loop.
    void set_lag(Duration most) { lag_ = most; }

    // Adds a line to the log, with the time and the program that runs.
    void say(std::string_view text);

    [[nodiscard]] const std::vector<std::string>& log() const { return log_; }

    // Removes this text from log lines, because it differs from run to run.
    void hide(std::string text) { hidden_ = std::move(text); }

    // Names the program that runs until the next call.
    void set_speaker(std::string name) { speaker_ = std::move(name); }

private:
    friend class Program;

    void notice_ready();

    testing::ManualClock clock_;
    Prng luck_;
    Duration lag_{};
    std::map<std::pair<TimePoint, std::uint64_t>, Task> events_;
    std::uint64_t last_event_ = 0;
    std::vector<Program*> programs_;    // in the order of their starts
    UniqueFd loops_;                    // an epoll of their loops
    std::vector<epoll_event> noticed_;  // buffer of notice_ready()
    std::uint64_t steps_ = 0;
    std::string speaker_;
    std::string hidden_;
    std::vector<std::string> log_;
};

// A process of the world: an event loop, and its threads' tasks. Its end closes its sockets.
class Program {
public:
    Program(Schedule& schedule, std::string name);
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    virtual ~Program();

    [[nodiscard]] EventLoop& loop() { return loop_; }

    [[nodiscard]] const std::string& name() const { return name_; }

    // Stopped as by SIGSTOP: neither its loop nor its threads run until go_on().
    void stop() { is_stopped_ = true; }

    void go_on();

    [[nodiscard]] bool is_stopped() const { return is_stopped_; }

    // Runs a task of one of the program's threads after `delay`; while the program is stopped, at
    // go_on(); never after its end.
    void run_in(Duration delay, Schedule::Task task);

    // Shuts down its sockets without sending anything more, as the kernel does for a killed
    // process.
    void drop_sockets();

    // Cuts one of the program's connections, chosen by the seed. False: it has none.
    bool cut_connection();

private:
    friend class Schedule;

    [[nodiscard]] std::optional<TimePoint> wakes_at() const;
    void run(const Schedule::Task& task);
    [[nodiscard]] std::vector<int> sockets() const;

    Schedule& schedule_;
    std::string name_;
    EventLoop loop_;
    bool is_stopped_ = false;
    bool is_noticed_ = false;  // its loop has something to do, as of notice_ready()
    std::optional<TimePoint> ready_at_;
    std::vector<Schedule::Task> deferred_;  // tasks that became due while it was stopped
    std::shared_ptr<Program*> self_;        // expires with this object
};

}  // namespace stoker::world

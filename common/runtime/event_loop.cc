#include "common/runtime/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/check.h"

namespace stoker {

namespace {

constexpr int kEventsMax = 64;
constexpr Duration kWaitMax = std::chrono::seconds{1};

}  // namespace

EventLoop::EventLoop(const Clock& clock)
    : clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    STOKER_CHECK(epoll_.valid() && wake_.valid(), "no descriptors left for the event loop");
    watch(wake_.get(), [this](IoReady) {
        std::uint64_t count = 0;
        // A spurious wake-up reads nothing, which is fine.
        [[maybe_unused]] const auto bytes = ::read(wake_.get(), &count, sizeof(count));
    });
}

EventLoop::~EventLoop() = default;

std::optional<TimePoint> EventLoop::next_timer() const {
    return timers_.empty() ? std::nullopt : std::optional{timers_.begin()->first.first};
}

void EventLoop::watch(int fd, IoCallback callback) {
    auto watch = std::make_shared<Watch>(Watch{std::move(callback), EPOLLIN});
    epoll_event event{};
    event.events = watch->events;
    event.data.fd = fd;
    STOKER_CHECK(
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, "cannot watch a descriptor");
    watches_[fd] = std::move(watch);
}

void EventLoop::set_interest(int fd, bool readable, bool writable) {
    Watch& watch = *watches_.at(fd);
    std::uint32_t events = readable ? EPOLLIN : 0U;
    events |= writable ? static_cast<std::uint32_t>(EPOLLOUT) : 0U;
    if (events == watch.events) {
        return;
    }
    watch.events = events;
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    STOKER_CHECK(
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0, "cannot change a watch");
}

void EventLoop::forget(int fd) {
    if (watches_.erase(fd) > 0) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    }
}

TimerId EventLoop::run_at(TimePoint when, Task task) {
    const TimerId id{next_timer_++};
    timers_.emplace(std::pair{when, id}, std::move(task));
    timer_times_.emplace(id, when);
    return id;
}

void EventLoop::cancel(TimerId timer) {
    const auto found = timer_times_.find(timer);
    if (found != timer_times_.end()) {
        timers_.erase({found->second, timer});
        timer_times_.erase(found);
    }
}

void EventLoop::post(Task task) {
    {
        const std::lock_guard lock{mutex_};
        posted_.push_back(std::move(task));
        if (posted_.size() > 1) {
            return;  // the loop was woken for the first task
        }
    }
    const std::uint64_t one = 1;
    // The counter cannot overflow: each wake-up of the loop resets it.
    [[maybe_unused]] const auto bytes = ::write(wake_.get(), &one, sizeof(one));
}

void EventLoop::stop() {
    post([this] {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    });
}

void EventLoop::run() {
    while (step(kWaitMax)) {
    }
}

bool EventLoop::step(Duration timeout) {
    std::array<epoll_event, kEventsMax> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsMax, wait_ms(timeout));
    STOKER_CHECK(count >= 0 || errno == EINTR, "epoll_wait failed");
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events.at(static_cast<std::size_t>(i));
        const auto found = watches_.find(event.data.fd);
        if (found == watches_.end()) {
            continue;  // an earlier callback of this round has called forget()
        }
        const std::shared_ptr<Watch> watch = found->second;
        const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
        watch->callback({(event.events & EPOLLIN) != 0 || broken, (event.events & EPOLLOUT) != 0});
    }
    run_timers();
    run_posted();
    const std::lock_guard lock{mutex_};
    return !stopping_;
}

int EventLoop::wait_ms(Duration timeout) const {
    if (!timers_.empty()) {
        timeout = std::min(timeout, timers_.begin()->first.first - clock_.now());
    }
    // Rounded up: a timer that is due in half a millisecond must not spin.
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(timeout, Duration{}));
    return static_cast<int>(wait.count());
}

void EventLoop::run_timers() {
    const TimePoint now = clock_.now();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
        const auto timer = timers_.extract(timers_.begin());
        timer_times_.erase(timer.key().second);
        timer.mapped()();
    }
}

void EventLoop::run_posted() {
    std::vector<Task> tasks;
    {
        const std::lock_guard lock{mutex_};
        tasks.swap(posted_);
    }
    for (Task& task : tasks) {
        task();
    }
}

}  // namespace stoker

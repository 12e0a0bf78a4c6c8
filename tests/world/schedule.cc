#include "tests/world/schedule.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/log/sink.h"

namespace stoker::world {

Schedule::Schedule(std::uint64_t seed)
    : luck_(seed),
      loops_(::epoll_create1(EPOLL_CLOEXEC)) {
    log::set_sink([this](log::Level level, std::string_view message, auto fields) {
        std::string text = level >= log::Level::kWarning ? "warning: " : "";
        text += message;
        for (const log::Field& field : fields) {
            text += fmt::format(" {}={}", field.key, field.value);
        }
        say(text);
    });
}

Schedule::~Schedule() {
    log::set_sink(nullptr);
}

Duration Schedule::draw(Duration least, Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return least + Duration{static_cast<Duration::rep>(luck_.below(span + 1))};
}

Duration Schedule::draw_scale(Duration least, Duration most) {
    const double low = std::log(static_cast<double>(least.count()));
    const double high = std::log(static_cast<double>(most.count()));
    return Duration{static_cast<Duration::rep>(std::exp(low + (high - low) * luck_.unit()))};
}

void Schedule::run_in(Duration delay, Task task) {
    events_.emplace(std::pair{now() + delay, ++last_event_}, std::move(task));
}

void Schedule::say(std::string_view words) {
    std::string text{words};
    for (std::size_t at = text.find(hidden_); !hidden_.empty() && at != std::string::npos;
         at = text.find(hidden_)) {
        text.erase(at, hidden_.size());
    }
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(passed()).count();
    log_.push_back(fmt::format(
        "{:4}.{:06} {:<12} {}", micros / 1'000'000, micros % 1'000'000, speaker_, text));
}

// The order of the programs, not that of their descriptors' events, decides who draws first.
void Schedule::notice_ready() {
    noticed_.resize(programs_.size() + 1);
    const int count =
        ::epoll_wait(loops_.get(), noticed_.data(), static_cast<int>(noticed_.size()), 0);
    for (int i = 0; i < count; ++i) {
        static_cast<Program*>(noticed_[static_cast<std::size_t>(i)].data.ptr)->is_noticed_ = true;
    }
    for (Program* program : programs_) {
        const bool is_noticed = std::exchange(program->is_noticed_, false);
        if (is_noticed && !program->ready_at_ && !program->is_stopped_) {
            program->ready_at_ = now() + draw(Duration{1}, lag_);
        }
    }
}

bool Schedule::step(TimePoint end) {
    notice_ready();
    TimePoint when = end;
    Program* next = nullptr;
    for (Program* program : programs_) {
        if (const auto wakes = program->wakes_at(); wakes && *wakes < when) {
            when = *wakes;
            next = program;
        }
    }
    const bool is_event = !events_.empty() && events_.begin()->first.first <= when;
    if (is_event) {
        when = events_.begin()->first.first;
    }
    clock_.advance(std::max(Duration{}, when - now()));
    if (!is_event && next == nullptr) {
        return false;
    }
    ++steps_;
    if (is_event) {
        const auto event = events_.extract(events_.begin());
        speaker_ = "world";
        event.mapped()();
    } else {
        next->ready_at_.reset();
        speaker_ = next->name_;
        next->loop_.step(Duration{});
    }
    speaker_ = "world";
    return true;
}

Program::Program(Schedule& schedule, std::string name)
    : schedule_(schedule),
      name_(std::move(name)),
      loop_(schedule.clock()),
      self_(std::make_shared<Program*>(this)) {
    schedule_.programs_.push_back(this);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
    STOKER_CHECK(
        ::epoll_ctl(schedule_.loops_.get(), EPOLL_CTL_ADD, loop_.fd(), &event) == 0, "epoll");
}

Program::~Program() {
    std::erase(schedule_.programs_, this);
    ::epoll_ctl(schedule_.loops_.get(), EPOLL_CTL_DEL, loop_.fd(), nullptr);
}

std::optional<TimePoint> Program::wakes_at() const {
    if (is_stopped_) {
        return std::nullopt;
    }
    const auto timer = loop_.next_timer();
    return timer && ready_at_ ? std::min(timer, ready_at_) : timer ? timer : ready_at_;
}

void Program::go_on() {
    is_stopped_ = false;
    for (const Schedule::Task& task : std::exchange(deferred_, {})) {
        run_in(Duration{}, task);
    }
}

void Program::run_in(Duration delay, Schedule::Task task) {
    schedule_.run_in(delay, [self = std::weak_ptr{self_}, task = std::move(task)] {
        if (const auto program = self.lock()) {
            (*program)->run(task);
        }
    });
}

void Program::run(const Schedule::Task& task) {
    if (is_stopped_) {
        deferred_.push_back(task);
        return;
    }
    schedule_.set_speaker(name_);
    task();
}

// Sorted, because equal seeds give equal descriptors, but the kernel may list them in any order.
std::vector<int> Program::sockets() const {
    std::ifstream file{fmt::format("/proc/self/fdinfo/{}", loop_.fd())};
    std::vector<int> found;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words{line};
        std::string key;
        int fd = -1;

        struct stat about {};

        if (words >> key >> fd && key == "tfd:" && ::fstat(fd, &about) == 0 &&
            S_ISSOCK(about.st_mode)) {
            found.push_back(fd);
        }
    }
    std::ranges::sort(found);
    return found;
}

// The objects that own the descriptors close them later; until then writes to them reach no peer.
void Program::drop_sockets() {
    for (const int fd : sockets()) {
        ::shutdown(fd, SHUT_RDWR);
    }
}

bool Program::cut_connection() {
    std::vector<int> connected;
    for (const int fd : sockets()) {
        sockaddr_storage peer{};
        socklen_t size = sizeof(peer);
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0) {
            connected.push_back(fd);
        }
    }
    if (connected.empty()) {
        return false;
    }
    ::shutdown(connected[schedule_.luck().below(connected.size())], SHUT_RDWR);
    return true;
}

}  // namespace stoker::world

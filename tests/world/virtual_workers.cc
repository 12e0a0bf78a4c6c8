#include "tests/world/virtual_workers.h"

#include <utility>

namespace stoker::world {

VirtualWorkers::VirtualWorkers(
    Schedule& schedule,
    Program& program,
    std::size_t count,
    const Duration& slowest,
    const bool& is_dead)
    : schedule_(schedule),
      program_(program),
      free_(count),
      slowest_(slowest),
      is_dead_(is_dead) {}

VirtualWorkers::~VirtualWorkers() {
    self_.reset();
    while (!is_dead_ && !started_.empty()) {
        take(started_.begin()->first)();
    }
    while (!is_dead_ && !waiting_.empty()) {
        const Task task = std::move(waiting_.front());
        waiting_.pop_front();
        task();
    }
}

Workers::Task VirtualWorkers::take(std::uint64_t id) {
    const auto at = started_.find(id);
    Task task = std::move(at->second);
    started_.erase(at);
    return task;
}

void VirtualWorkers::post(Task task) {
    waiting_.push_back(std::move(task));
    start_some();
}

void VirtualWorkers::start_some() {
    while (free_ > 0 && !waiting_.empty()) {
        --free_;
        const std::uint64_t id = ++last_;
        started_.emplace(id, std::move(waiting_.front()));
        waiting_.pop_front();
        const auto end = [this, id, self = std::weak_ptr{self_}] {
            if (self.expired() || is_dead_) {
                return;
            }
            const Task task = take(id);
            ++free_;
            task();
            if (!self.expired()) {
                start_some();
            }
        };
        program_.run_in(schedule_.draw_scale(std::chrono::microseconds{1}, slowest_), end);
    }
}

}  // namespace stoker::world

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "common/runtime/workers.h"
#include "tests/world/schedule.h"

namespace stoker::world {

// Workers of a program of the world: each task runs whole, at a time from the seed. When the
// program was killed (`is_dead`), tasks that wait are dropped. Not thread-safe.
class VirtualWorkers final : public Workers {
public:
    // A task takes up to `slowest`, which the world may change.
    VirtualWorkers(
        Schedule& schedule,
        Program& program,
        std::size_t count,
        const Duration& slowest,
        const bool& is_dead);
    ~VirtualWorkers() override;

    void post(Task task) override;

private:
    void start_some();
    Task take(std::uint64_t id);

    Schedule& schedule_;
    Program& program_;
    std::size_t free_;
    const Duration& slowest_;
    const bool& is_dead_;
    std::deque<Task> waiting_;
    std::map<std::uint64_t, Task> started_;
    std::uint64_t last_ = 0;
    std::shared_ptr<int> self_ = std::make_shared<int>(0);  // expires with us
};

}  // namespace stoker::world

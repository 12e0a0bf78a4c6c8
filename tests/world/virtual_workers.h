#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "common/runtime/workers.h"
#include "tests/world/schedule.h"

namespace stoker::world {

// Worker pool of a simulated process. Each task runs without interruption, after a delay drawn from
// the seeded random source. Once the process is killed (`is_dead`), tasks that have not run are
// dropped. Not thread-safe.
class VirtualWorkers final : public Workers {
public:
    // `slowest`: longest duration of a task; the world may change it.
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
    std::shared_ptr<int> self_ = std::make_shared<int>(0);  // expires with this object
};

}  // namespace stoker::world

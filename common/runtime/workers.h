#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace stoker {

// Runs blocking work (disks, checksums, listings) outside the event loop: on threads in programs
// (WorkerPool), in virtual time in tests/world.
class Workers {
public:
    using Task = std::function<void()>;

    Workers() = default;
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Runs all posted tasks before it returns.
    virtual ~Workers() = default;

    // Any thread. With one worker, tasks run in the order of post().
    virtual void post(Task task) = 0;
};

// Makes workers that run at most `count` tasks at a time; `name` appears in thread lists.
using MakeWorkers =
    std::function<std::unique_ptr<Workers>(const std::string& name, std::size_t count)>;

}  // namespace stoker

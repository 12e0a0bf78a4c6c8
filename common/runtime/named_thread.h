#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace stoker {

// Starts a thread that `top` and debuggers show under `name` (cut to 15 characters). It stops and
// joins with the returned handle. Signals are blocked in it: they belong to the thread that runs
// the event loop.
std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body);

}  // namespace stoker

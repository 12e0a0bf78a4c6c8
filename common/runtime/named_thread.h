#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace stoker {

// Starts a thread that `top` and debuggers show under `name` (cut to 15 characters). The returned
// handle stops and joins it. Signals are blocked in it: the thread of the event loop handles them.
std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body);

}  // namespace stoker

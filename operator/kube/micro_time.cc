#include "operator/kube/micro_time.h"

#include <chrono>

#include <fmt/format.h>

#include "operator/api/time_format.h"

namespace stoker::control {

std::string format_micro_time(WallTime time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const auto micros = std::chrono::floor<std::chrono::microseconds>(time - seconds).count();
    std::string text = format_time(seconds);
    text.pop_back();  // the Z
    return fmt::format("{}.{:06}Z", text, micros);
}

}  // namespace stoker::control

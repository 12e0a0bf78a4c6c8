#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "common/log/log.h"

namespace stoker::log {

using Sink = std::function<void(Level, std::string_view message, std::initializer_list<Field>)>;

// Passes lines to `sink` instead of stderr, for a program that contains several others; nullptr:
// stderr again. Call it while no other thread logs.
void set_sink(Sink sink);

}  // namespace stoker::log

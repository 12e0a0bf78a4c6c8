#pragma once

// STOKER_CHECK(condition, "what it means"): for what only a bug of ours can break. Always on; it
// prints place and text to stderr and aborts. A restart is cheap and designed for; going on with a
// broken invariant is neither. What the environment can cause is a Result, never a check.
#define STOKER_CHECK(condition, text) \
    (static_cast<bool>(condition)     \
         ? static_cast<void>(0)       \
         : ::stoker::check_failed(#condition, (text), __FILE__, __LINE__))

namespace stoker {

[[noreturn]] void check_failed(const char* condition, const char* text, const char* file, int line);

}  // namespace stoker

#pragma once

// STOKER_CHECK(condition, "text"): for invariants that only our own bug can break. Always on; if
// the condition fails, it prints source position and text to stderr and aborts: a restart is safer
// than a broken invariant. Failures caused by the environment are a Result, never a check.
#define STOKER_CHECK(condition, text) \
    (static_cast<bool>(condition)     \
         ? static_cast<void>(0)       \
         : ::stoker::check_failed(#condition, (text), __FILE__, __LINE__))

namespace stoker {

[[noreturn]] void check_failed(const char* condition, const char* text, const char* file, int line);

}  // namespace stoker

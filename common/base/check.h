#pragma once

// STOKER_CHECK(condition, "what it means"): for invariants that only our own bug can break. Always
// on; it prints the source position and the text to stderr and aborts, because a restart is safer
// than a broken invariant. Failures that the environment can cause are a Result, never a check.
#define STOKER_CHECK(condition, text) \
    (static_cast<bool>(condition)     \
         ? static_cast<void>(0)       \
         : ::stoker::check_failed(#condition, (text), __FILE__, __LINE__))

namespace stoker {

[[noreturn]] void check_failed(const char* condition, const char* text, const char* file, int line);

}  // namespace stoker

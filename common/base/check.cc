#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace stoker {

void check_failed(const char* condition, const char* text, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", file, line, text, condition);
    std::fflush(stderr);
    std::abort();
}

}  // namespace stoker

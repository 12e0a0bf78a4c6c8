#include "operator/api/node_report.h"

namespace stoker::control {

std::string_view to_string(PoolVerdict verdict) {
    switch (verdict) {
        case PoolVerdict::kReady:
            return "Ready";
        case PoolVerdict::kNotEmpty:
            return "NotEmpty";
        case PoolVerdict::kOtherPool:
            return "OtherPool";
        case PoolVerdict::kRefused:
            return "PathRefused";
        case PoolVerdict::kFailed:
            return "Failed";
        case PoolVerdict::kUnknown:
            break;
    }
    return "Unknown";
}

}  // namespace stoker::control

#include "operator/core/spec/job_state.h"

#include <array>
#include <cstddef>

namespace stoker::control {

std::string_view to_string(JobState state) {
    constexpr std::array<std::string_view, 10> kTexts{
        "Invalid",
        "NameTaken",
        "Waiting",
        "Suspended",
        "Queued",
        "Starting",
        "Running",
        "Restarting",
        "Complete",
        "Failed"};
    return kTexts[static_cast<std::size_t>(state)];
}

bool is_final(JobState state) {
    return state == JobState::kComplete || state == JobState::kFailed;
}

bool is_suspended(JobState state) {
    return state == JobState::kSuspended || state == JobState::kQueued;
}

bool reads_now(JobState state) {
    return state == JobState::kStarting || state == JobState::kRunning;
}

}  // namespace stoker::control

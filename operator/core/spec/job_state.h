#pragma once

#include <cstdint>
#include <string_view>

namespace stoker::control {

// The reason of the condition Finished, which is the column STATE.
//
//   Waiting ──▶ Starting ──▶ Running ──▶ Complete
//      ▲  ▲        │  ▲          │
//      │  │        ▼  │          ▼
//   Queued Suspended Restarting ◀┴──▶ Failed
enum class JobState : std::uint8_t {
    kInvalid,     // the spec breaks a rule; a person has to change it
    kNameTaken,   // somebody else's Job or Service has the name that we need
    kWaiting,     // for a Dataset or a CachePool
    kSuspended,   // spec.suspend, or somebody else has suspended its Job
    kQueued,      // Kueue has not admitted it yet
    kStarting,    // pods are being scheduled and started
    kRunning,     // every rank is ready
    kRestarting,  // all ranks are being stopped, to start again together
    kComplete,
    kFailed,
};

std::string_view to_string(JobState state);

bool is_final(JobState state);

// Whether the job has no pods, or is to have none, until somebody lets it go on: the condition
// Suspended.
bool is_suspended(JobState state);

// Whether an attempt's pods read, or are on their way to.
bool reads_now(JobState state);

}  // namespace stoker::control

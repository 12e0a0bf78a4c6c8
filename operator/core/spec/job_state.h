#pragma once

#include <cstdint>
#include <string_view>

namespace stoker::control {

// Reason of the condition Finished, shown in the column STATE.
//
//   Waiting ──▶ Starting ──▶ Running ──▶ Complete
//      ▲  ▲        │  ▲          │
//      │  │        ▼  │          ▼
//   Queued Suspended Restarting ◀┴──▶ Failed
enum class JobState : std::uint8_t {
    kInvalid,     // the spec breaks a rule; a person has to change it
    kNameTaken,   // another owner's Job or Service has the required name
    kWaiting,     // for a Dataset or a CachePool
    kSuspended,   // spec.suspend is set, or another client suspended its Job
    kQueued,      // Kueue has not admitted it yet
    kStarting,    // pods are being scheduled and started
    kRunning,     // every rank is ready
    kRestarting,  // all ranks stop, to start again together
    kComplete,
    kFailed,
};

std::string_view to_string(JobState state);

bool is_final(JobState state);

// Condition Suspended: the job has no pods, or shall have none, until something resumes it.
bool is_suspended(JobState state);

// Whether an attempt's pods read, or will soon.
bool reads_now(JobState state);

}  // namespace stoker::control

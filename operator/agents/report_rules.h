#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "operator/api/agent_report.h"

// What a sidecar may say. It runs in a user's pod, so nothing that it says is taken on trust: texts
// and lists are bounded, totals fit into a status and never fall within one session. Pure,
// thread-safe.
namespace stoker::control {

struct AgentMount {
    std::string name;         // under spec.datasets of the TrainingJob
    std::string dataset_uid;  // names the node directory

    bool operator==(const AgentMount&) const = default;
};

// The first words of a sidecar. Whether namespace, pod and node are true is the authenticator's to
// say.
struct AgentHello {
    std::string namespace_name;
    std::string pod;
    std::string node;
    std::string training_job;
    std::string training_job_uid;
    std::int32_t rank = 0;
    std::string version;
    std::vector<AgentMount> datasets;

    bool operator==(const AgentHello&) const = default;
};

// One report without what its session already knows.
struct ReportBody {
    std::uint64_t sequence = 0;
    std::vector<DatasetReport> datasets;
    TrainerReport trainer;

    bool operator==(const ReportBody&) const = default;
};

inline constexpr std::size_t kAgentDatasetCountMax = 16;  // as spec.datasets in the CRD
inline constexpr std::size_t kAgentSketchCountMax = 128;  // jobs that read one node directory
inline constexpr std::size_t kAgentNameBytesMax = 253;    // of a Kubernetes name
inline constexpr std::size_t kAgentJobBytesMax = 520;     // a filler names its Dataset and pool
inline constexpr std::size_t kAgentErrorBytesMax = 1024;  // longer ones are cut
inline constexpr std::size_t kAgentKeyBytesMax = 1024;    // longer ones are cut
inline constexpr std::int32_t kAgentRankMax = 65535;
inline constexpr std::uint64_t kAgentCountMax =
    1ULL << 56U;  // of anything; the sum over 100 pods fits into an int64
inline constexpr std::uint64_t kAgentTimeMax = 1ULL << 60U;  // nanoseconds, summed over processes

// kInvalidArgument: a missing, empty or overlong name, a rank out of range, too many datasets or
// one twice.
Status validate_hello(const AgentHello& hello);

// `before` is the last report of the same session, null for the first. kAlreadyExists: not newer
// than `before`; it is to be ignored and means nothing bad. kInvalidArgument: a dataset that the
// hello did not name, or numbers that cannot be.
Status validate_report(const AgentHello& hello, const ReportBody* before, const ReportBody& next);

// A sketch without masses stands for the one of the same revision in `before`, the last report of
// the session (null: none), and takes its masses over; where there is none, it goes.
void complete_sketches(const ReportBody* before, ReportBody& next);

// Cuts error texts to kAgentErrorBytesMax and keys to kAgentKeyBytesMax, at a character's border.
void trim_texts(ReportBody& report);

}  // namespace stoker::control

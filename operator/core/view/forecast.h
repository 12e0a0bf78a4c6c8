#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/core/view/cluster_view.h"

// The reads of a job, known before it begins (placement Clairvoyant, docs/adr/0007). Pure.
namespace stoker::control {

// Type of the TrainingJob's condition. While it has the reason kReadsDiffer, no operator believes the
// spec of the attempt's reads.
inline constexpr std::string_view kClairvoyantPlacement = "ClairvoyantPlacement";
inline constexpr std::string_view kReadsDiffer = "ReadsDiffer";

// Every member of a group gets the node of each rank.
inline constexpr std::int64_t kForeseenRanksMax = 16'384;

// The reads of one job's ranks in one dataset.
struct Forecast {
    KnownReads reads;                     // without rank_members
    std::vector<std::string> pod_nodes;   // by pod index; empty: not all pods have a node yet
    std::uint32_t processes_per_pod = 1;  // their ranks follow each other, as torchrun counts them
    std::int64_t rank_count = 1;
    std::int64_t attempt = 0;
};

// By what a dataset's samples are placed among the nodes that share them.
struct Placing {
    enum class Rule : std::uint8_t {
        kWaiting,      // by the hash: not all pods of a reader have a node that shares samples
        kReads,        // by the reads of `job_uid`
        kRefuted,      // by the hash: `job_uid` reads in another order than its spec says
        kOtherReader,  // by the hash: several jobs read, or the reads of the only one are not known
        kOneNode,      // by the hash: the only reader runs on one node
    };

    Rule rule = Rule::kWaiting;
    std::string job_uid{};

    bool operator==(const Placing&) const = default;
};

// Why nobody can know the job's reads in a dataset with placement Clairvoyant, or why nothing
// follows from them, in a sentence. Empty: neither.
Blocker find_forecast_blocker(const TrainingJob& job, const ResolvedDataset& dataset);

// Whether the job's attempt has read in another order than its spec says, by its status. False while
// the job is suspended: the spec may then change.
bool has_read_otherwise(const TrainingJob& job);

// nullopt: the job's spec says nothing of its reads in this dataset, or there is a blocker.
std::optional<Forecast> foresee(const JobUse& use, const ResolvedDataset& dataset);

// The reads with the position of each rank's node in `members`. nullopt: a node is not a member.
std::optional<KnownReads> place_ranks(
    const Forecast& forecast, const std::vector<PeerMember>& members);

}  // namespace stoker::control

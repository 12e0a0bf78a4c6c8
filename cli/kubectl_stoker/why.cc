#include "cli/kubectl_stoker/why.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cli/advise/wrapped.h"
#include "cli/kubectl_stoker/curve_plot.h"
#include "cli/kubectl_stoker/table.h"
#include "common/base/saturating.h"

namespace stoker::cli {

namespace {

using control::AllocationReason;
using control::Contender;
using control::JobAllocation;
using control::JobExplanation;

constexpr std::size_t kNeighbours = 2;  // competing jobs shown before and after this one

std::string reason_lines(const std::string& reason, const std::string& message) {
    return fmt::format("Reason: {}\n{}", reason, wrapped(message, "  "));
}

// The sidecars' counters, from the status.
std::string counted(const control::TrainingJob& job) {
    if (!job.status.cache) {
        return "";
    }
    const control::CacheStatus& cache = *job.status.cache;
    std::string text = fmt::format("Now: {} on its nodes", to_string(bytes_of(cache.used_bytes)));
    if (!job.status.columns.hit.empty()) {
        text += fmt::format(", {} of bytes hit", job.status.columns.hit);
    }
    text += fmt::format(
        ", {} from the origin", rate_text(static_cast<double>(cache.origin_bytes_per_second)));
    if (cache.benefit && !cache.benefit->seconds_saved_per_epoch.empty()) {
        text += fmt::format(
            ", {} s of every epoch saved ({})",
            cache.benefit->seconds_saved_per_epoch,
            cache.benefit->method);
    }
    return wrapped(text + ".", "");
}

std::string head(const JobExplanation& explanation) {
    const JobAllocation& allocation = explanation.allocation;
    std::string text = fmt::format(
        "{}: {} of {} wanted, on {} node{} of pool {}\n",
        to_string(allocation.job),
        to_string(allocation.granted),
        to_string(allocation.wanted),
        explanation.node_count,
        explanation.node_count == 1 ? "" : "s",
        allocation.pool);
    text += reason_lines(std::string{to_string(allocation.reason)}, allocation.message);
    if (allocation.target > allocation.granted) {
        text += fmt::format(
            "  It is to have {} as soon as others have given back what they must.\n",
            to_string(allocation.target));
    }
    return text;
}

std::string speed(const JobExplanation& explanation) {
    const control::AllocationNumbers& numbers = explanation.allocation.numbers;
    if (explanation.curve.size() < 2) {
        return "\nHow fast it reads, and what its origin gives it, is not known yet.\n";
    }
    const double gain =
        numbers.rate_without_cache > 0 ? numbers.rate / numbers.rate_without_cache : 1;
    std::string text = fmt::format(
        "Predicted speed: {} with its bytes, {} without a cache ({:.2f}x), {} if data were never "
        "late.",
        rate_text(numbers.rate),
        rate_text(numbers.rate_without_cache),
        gain,
        rate_text(numbers.ingest_rate));
    if (explanation.allocation.target < explanation.allocation.wanted) {
        text += fmt::format(
            " The next GiB would save {} at the origin.", rate_text(numbers.marginal_per_gib));
    }
    return '\n' + wrapped(text, "") + '\n' +
           "Speed over bytes cached on all its nodes (O: with what it is to have)\n\n" +
           plot_curve(explanation.curve, explanation.allocation.target);
}

std::string worth(double per_gib) {
    return per_gib > 0 ? rate_text(per_gib) : "";
}

std::string contenders(const JobExplanation& explanation) {
    const std::vector<Contender>& all = explanation.contenders;
    if (all.size() < 2) {
        return "\nNo other job wants bytes of its nodes.\n";
    }
    const auto self = static_cast<std::size_t>(
        std::ranges::find(all, explanation.allocation.job, &Contender::job) - all.begin());
    const std::size_t begin = self > kNeighbours ? self - kNeighbours : 0;
    const std::size_t end = std::min(self + kNeighbours + 1, all.size());
    using enum Table::Align;
    Table table(
        {{" "},
         {"JOB"},
         {"HAS", kRight},
         {"WANTS", kRight},
         {"LAST GIB", kRight},
         {"NEXT GIB", kRight}});
    for (std::size_t i = begin; i < end; ++i) {
        table.add(
            {i == self ? ">" : " ",
             to_string(all[i].job),
             to_string(all[i].granted),
             to_string(all[i].wanted),
             worth(all[i].last_per_gib),
             worth(all[i].next_per_gib)});
    }
    std::string text =
        "\nWho wants bytes of its nodes, and what a GiB saves them at the origin\n\n" +
        table.text();
    if (begin > 0 || end < all.size()) {
        const std::size_t below = all.size() - end;
        text += fmt::format(
            "  ({}{}{})\n",
            begin > 0 ? fmt::format("{} more above", begin) : "",
            begin > 0 && below > 0 ? ", " : "",
            below > 0 ? fmt::format("{} more below", below) : "");
    }
    return text;
}

std::string no_remedy(const JobAllocation& allocation) {
    if (allocation.reason == AllocationReason::kComputeBound) {
        return "  Nothing here: it computes longer than the origin needs. A faster trainer or a "
               "slower\n  origin would.\n";
    }
    if (allocation.reason == AllocationReason::kWaitingForPods) {
        return "  A pod of the job on a node of the pool.\n";
    }
    if (allocation.reason == AllocationReason::kStopped) {
        return "  Another stopPolicy of the pool or of the namespace's CacheQuota.\n";
    }
    if (allocation.target >= allocation.wanted) {
        return "  Nothing needs to: it is to have all the bytes that make it faster.\n";
    }
    return "  Neither more room in the pool, nor a larger quota, nor the end of a neighbour "
           "alone.\n";
}

std::string remedies(const JobExplanation& explanation, const control::AllocationView& view) {
    std::string text = "\nWhat would change it\n\n";
    if (explanation.remedies.empty()) {
        return text + no_remedy(explanation.allocation);
    }
    Table table({{"CHANGE"}, {"GRANT", Table::Align::kRight}, {"SPEED", Table::Align::kRight}});
    for (const control::Remedy& remedy : explanation.remedies) {
        const JobAllocation& after = remedy.after;
        table.add(
            {describe(remedy.change, view),
             to_string(after.granted),
             after.numbers.rate > 0 ? rate_text(after.numbers.rate) : ""});
    }
    return text + table.text("  ");
}

// Describes an origin object that differs from the revision that the job's ranks read; else empty.
std::string origin(const control::TrainingJob& job) {
    const control::Condition* told =
        control::find_condition(job.status.conditions, "OriginUnchanged");
    return told != nullptr && told->status == control::ConditionStatus::kFalse
               ? fmt::format("Origin: {}\n{}", told->reason, wrapped(told->message, "  "))
               : "";
}

// The explanation from the status alone.
std::string from_status(const control::TrainingJob& job) {
    const control::Condition* allocated =
        control::find_condition(job.status.conditions, "CacheAllocated");
    std::string text = to_string(job.meta.key());
    if (job.status.cache) {
        text += fmt::format(
            ": {} of {} wanted, in pool {}",
            to_string(bytes_of(job.status.cache->allocated_bytes)),
            to_string(bytes_of(job.status.cache->wanted_bytes)),
            job.status.cache->pool);
    }
    text += '\n';
    text += allocated != nullptr ? reason_lines(allocated->reason, allocated->message)
                                 : "Nothing was decided about its cache yet.\n";
    // A job that cannot or may not read its data waits for access, not for bytes.
    const control::Condition* data = control::find_condition(job.status.conditions, "DataReady");
    if (data != nullptr && data->status == control::ConditionStatus::kFalse) {
        text += fmt::format("Data: {}\n{}", data->reason, wrapped(data->message, "  "));
    }
    const control::Condition* profiled = control::find_condition(job.status.conditions, "Profiled");
    if (profiled != nullptr) {
        text += fmt::format("Profile: {}\n{}", profiled->reason, wrapped(profiled->message, "  "));
    }
    if (job.status.cache && job.status.cache->benefit) {
        text += fmt::format(
            "The next GiB would save {} s of an epoch.\n",
            job.status.cache->benefit->marginal_per_gib);
    }
    return text + origin(job) + counted(job);
}

}  // namespace

std::string why_text(const WhyFacts& facts) {
    if (!facts.explanation) {
        return from_status(facts.job);
    }
    const JobExplanation& explanation = *facts.explanation;
    return head(explanation) + origin(facts.job) + counted(facts.job) + speed(explanation) +
           contenders(explanation) + remedies(explanation, facts.view) +
           fmt::format(
               "\nDecided {} s ago by operator {}.\n",
               std::chrono::floor<std::chrono::seconds>(facts.age).count(),
               facts.version);
}

}  // namespace stoker::cli

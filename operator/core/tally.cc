#include "operator/core/tally.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "operator/core/training_job_view.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kPercent = 100;

// Which of two states says more about a dataset.
int rank_of(ManifestState state) {
    switch (state) {
        case ManifestState::kReady:
            return 3;
        case ManifestState::kFailed:
            return 2;
        case ManifestState::kListing:
            return 1;
        case ManifestState::kUnknown:
            break;
    }
    return 0;
}

// The texts of equal states are chosen by their own order, so that the order of the reports does
// not matter.
void add_state(const DatasetReport& report, DatasetTally& sum) {
    const int rank = rank_of(report.manifest_state);
    const int before = rank_of(sum.state);
    if (rank < before) {
        return;
    }
    if (rank > before) {
        sum.error.clear();
    }
    sum.state = report.manifest_state;
    sum.error = std::max(sum.error, report.error);
    sum.objects_listed = std::max(sum.objects_listed, report.objects_listed);
    if (report.manifest_state == ManifestState::kReady && report.revision >= sum.revision) {
        sum.revision = report.revision;
        sum.samples = report.samples;
        sum.total = report.total_bytes;
    }
}

void add_dataset(const AgentReport& agent, const DatasetReport& report, bool fresh, Tally& sum) {
    DatasetTally& dataset = sum.datasets[report.dataset_uid];
    dataset.hit_samples += report.hit_samples;
    dataset.miss_samples += report.miss_samples;
    sum.cache_bytes += report.cache_bytes_read;
    sum.origin_bytes += report.origin_bytes_read;
    sum.hit_samples += report.hit_samples;
    sum.miss_samples += report.miss_samples;
    if (!fresh) {
        return;
    }
    add_state(report, dataset);
    if (report.leader) {
        Bytes& resident = dataset.resident[agent.node];
        resident = std::max(resident, report.resident_bytes);
        dataset.resident_samples += report.resident_samples;
        dataset.admitting = dataset.admitting && report.admitting;
    }
}

void add_progress(const std::vector<AgentReport>& reports, Tally& sum) {
    bool all_known = true;
    for (const AgentReport& report : reports) {
        sum.epoch = std::max(sum.epoch, report.trainer.epoch);
        sum.epoch_samples += report.trainer.epoch_samples;
        all_known = all_known && report.trainer.epoch_samples > 0;
    }
    if (!all_known) {
        sum.epoch_samples = 0;
    }
    for (const AgentReport& report : reports) {
        if (report.trainer.epoch == sum.epoch) {
            sum.epoch_position += report.trainer.epoch_position;
        }
    }
}

}  // namespace

bool is_fresh(const AgentReport& report, const Moment& now) {
    return now.steady - report.received_at <= kReportAgeMax;
}

Bytes DatasetTally::resident_bytes() const {
    Bytes result{};
    for (const auto& [node, bytes] : resident) {
        result += bytes;
    }
    return result;
}

Tally tally(const std::vector<AgentReport>& reports, const Moment& now) {
    Tally result;
    for (const AgentReport& report : reports) {
        const bool fresh = is_fresh(report, now);
        result.fresh_reports += fresh ? 1 : 0;
        result.newest = std::max(result.newest, std::optional(report.received_wall));
        for (const DatasetReport& dataset : report.datasets) {
            add_dataset(report, dataset, fresh, result);
        }
    }
    add_progress(reports, result);
    return result;
}

std::optional<std::int64_t> hit_percent(std::uint64_t hits, std::uint64_t misses) {
    if (hits + misses == 0) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(hits * kPercent / (hits + misses));
}

std::string ratio_text(std::int64_t percent) {
    return fmt::format("{}.{:02}", percent / kPercent, percent % kPercent);
}

std::int64_t count_of(Bytes bytes) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(bytes.count(), kMax));
}

}  // namespace stoker::control

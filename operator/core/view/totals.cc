#include "operator/core/view/totals.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/saturating.h"
#include "common/domain/segment_format.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

namespace {

constexpr std::int64_t kPercent = 100;

// Orders states of a dataset: a higher rank replaces a lower one.
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

// Between errors with equal states, the order of the texts decides, so the order of the reports
// does not matter.
void add_state(const DatasetReport& report, DatasetTotals& sum) {
    const int rank = rank_of(report.manifest_state);
    const int before = rank_of(sum.state);
    if (rank < before) {
        return;
    }
    if (rank > before) {
        sum.error.clear();
    }
    sum.state = report.manifest_state;
    // The error of a node that admits no bytes is reported for that node.
    if (report.admitting) {
        sum.error = std::max(sum.error, report.error);
    }
    sum.objects_listed = std::max(sum.objects_listed, report.objects_listed);
    if (report.manifest_state == ManifestState::kReady && report.revision >= sum.revision) {
        sum.revision = report.revision;
        sum.samples = report.samples;
        sum.total = report.total_bytes;
    }
}

// The disk has less room than the grant, and the dataset could use it.
std::string tell_disk_limit(const DatasetReport& report, const DiskLimit& limit) {
    if (report.granted_bytes.is_unlimited() || report.resident_samples >= report.samples) {
        return {};
    }
    const Bytes useful = std::min(
        report.granted_bytes, domain::records_bytes_max(report.total_bytes, report.samples));
    if (limit.resident >= useful) {
        return {};
    }
    return fmt::format(
        "keeps at most {} of the {} that it is granted, because {} of its disk stay free (the "
        "pool's reservedFree, and the window): free {} there, or lower reservedFree.",
        to_string(limit.resident),
        to_string(report.granted_bytes),
        to_string(limit.kept_free),
        to_string(useful - limit.resident));
}

// For messages: rounds up, so that the message does not change with every draw of a batch.
std::string roughly(Bytes bytes) {
    constexpr std::uint64_t kStep = mib(64).count();
    return to_string(Bytes{(bytes.count() + kStep - 1) / kStep * kStep});
}

std::string tell_window_lack(const DatasetReport& report) {
    if (report.window_lacks_bytes == Bytes::zero()) {
        return {};
    }
    return fmt::format(
        "has WindowTooSmall: its windowed jobs need {} for samples that loaders have drawn and not "
        "read, {} more than grant and window, and samples are fetched again: lower num_workers or "
        "prefetch_factor, or raise the job's cache.",
        roughly(report.window_needed_bytes),
        roughly(report.window_lacks_bytes));
}

std::string trouble_of(const DatasetReport& report) {
    if (!report.admitting) {
        return fmt::format("keeps nothing new: {}", report.error);
    }
    if (report.manifest_state != ManifestState::kReady) {
        return {};
    }
    if (report.disk_limit) {
        if (std::string told = tell_disk_limit(report, *report.disk_limit); !told.empty()) {
            return told;
        }
    }
    return tell_window_lack(report);
}

void add_dataset(
    const SidecarReport& sidecar, const DatasetReport& report, bool fresh, Totals& sum) {
    DatasetTotals& dataset = sum.datasets[report.dataset_uid];
    sum.cache_bytes += report.cache_bytes_read;
    sum.origin_bytes += report.miss_bytes_read;
    if (!fresh) {
        return;
    }
    add_state(report, dataset);
    if (report.leader) {
        Bytes& resident = dataset.resident[sidecar.node];
        resident = std::max(resident, report.resident_bytes);
        dataset.resident_samples += report.resident_samples;
        if (std::string trouble = trouble_of(report); !trouble.empty()) {
            std::string& told = dataset.troubles[sidecar.node];
            told = std::max(told, trouble);
        }
    }
}

std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(add_saturated(count_of(a), count_of(b)));
}

void add_progress(const std::vector<SidecarReport>& reports, Totals& sum) {
    bool all_known = true;
    for (const SidecarReport& report : reports) {
        sum.epoch = std::max(sum.epoch, report.trainer.epoch);
        sum.epoch_samples = sum_of(sum.epoch_samples, report.trainer.epoch_samples);
        all_known = all_known && report.trainer.epoch_samples > 0;
    }
    if (!all_known) {
        sum.epoch_samples = 0;
    }
    for (const SidecarReport& report : reports) {
        if (report.trainer.epoch == sum.epoch) {
            sum.epoch_position = sum_of(sum.epoch_position, report.trainer.epoch_position);
        }
    }
}

}  // namespace

bool is_fresh(const SidecarReport& report, const Moment& now) {
    return now.steady - report.received_at <= kReportAgeMax;
}

bool has_counted(const DatasetReport& report) {
    return report.leader && report.manifest_state == ManifestState::kReady;
}

Bytes DatasetTotals::resident_bytes() const {
    Bytes result{};
    for (const auto& [node, bytes] : resident) {
        result += bytes;
    }
    return result;
}

Totals total_of(const std::vector<SidecarReport>& reports, const Moment& now) {
    Totals result;
    for (const SidecarReport& report : reports) {
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

std::optional<std::int64_t> hit_percent(Bytes from_cache, Bytes from_origin) {
    const auto hits = static_cast<double>(from_cache.count());
    const double all = hits + static_cast<double>(from_origin.count());
    if (all == 0) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(hits * kPercent / all);
}

std::string tell_troubles(const DatasetTotals& dataset) {
    constexpr std::size_t kToldMax = 3;
    std::vector<std::string> sentences;
    for (const auto& [node, trouble] : dataset.troubles) {
        if (sentences.size() == kToldMax) {
            sentences.push_back(
                fmt::format("The same on {} more.", dataset.troubles.size() - kToldMax));
            break;
        }
        const bool is_sentence = trouble.ends_with('.');
        sentences.push_back(fmt::format("Node {} {}{}", node, trouble, is_sentence ? "" : "."));
    }
    return fmt::format("{}", fmt::join(sentences, " "));
}

std::string ratio_text(std::int64_t percent) {
    return fmt::format("{}.{:02}", percent / kPercent, percent % kPercent);
}

}  // namespace stoker::control

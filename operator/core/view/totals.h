#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/saturating.h"  // count_of()
#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"

// Sums over what sidecars reported. Pure.
namespace stoker::control {

// Whether the sidecar was heard of in the last kReportAgeMax.
bool is_fresh(const SidecarReport& report, const Moment& now);

// Whether the sidecar knows what is in its node directory. One that still lists the origin, or that
// the origin refuses, has not opened it: its zero bytes say nothing.
bool has_counted(const DatasetReport& report);

// What sidecars say about one dataset.
struct DatasetTotals {
    ManifestState state =
        ManifestState::kUnknown;  // ready if one says so, else failed, listing, unknown
    std::string error;            // of a failed listing, else of the last fetch that failed
    std::uint64_t objects_listed = 0;
    std::string revision;
    std::uint64_t samples = 0;
    Bytes total{};
    std::map<std::string, Bytes> resident;  // by node, told by the leader there
    std::uint64_t resident_samples = 0;
    std::map<std::string, std::string> troubles;  // by node: why it keeps less than it is granted

    [[nodiscard]] Bytes resident_bytes() const;

    bool operator==(const DatasetTotals&) const = default;
};

struct Totals {
    std::size_t fresh_reports = 0;
    std::optional<WallTime> newest;                 // when the newest report came, fresh or not
    std::map<std::string, DatasetTotals> datasets;  // by uid
    Bytes cache_bytes{};   // read without crossing the link to the origin for it
    Bytes origin_bytes{};  // read over that link, fetched ahead, waited for, or past the sidecars
    std::uint64_t epoch = 0;           // the newest that a rank reads
    std::uint64_t epoch_samples = 0;   // of all ranks; 0: not known of each
    std::uint64_t epoch_position = 0;  // of the ranks that read this epoch

    bool operator==(const Totals&) const = default;
};

// Counters come from every report, bytes on nodes and states only from fresh ones: a sidecar that
// ended has counted what it has counted, but no longer knows what is on the node. The order of
// `reports` does not matter.
Totals total_of(const std::vector<SidecarReport>& reports, const Moment& now);

// Share of the bytes read that did not cross the link to the origin for that read, in percent,
// rounded down; none before the first read. A sample that was fetched just in time did cross it.
std::optional<std::int64_t> hit_percent(Bytes from_cache, Bytes from_origin);

// "Node n1 keeps nothing new: disk full. And 2 more nodes." of a dataset's troubles; or nothing.
std::string tell_troubles(const DatasetTotals& dataset);

// "0.62" of 62.
std::string ratio_text(std::int64_t percent);

}  // namespace stoker::control

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/saturating.h"  // count_of()
#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"

// Sums over sidecars' reports. Pure.
namespace stoker::control {

// Whether the report is at most kReportAgeMax old.
bool is_fresh(const SidecarReport& report, const Moment& now);

// Whether the sidecar has scanned its node directory. While it lists the origin, or the origin
// refuses, it has not: zero bytes then mean unknown.
bool has_counted(const DatasetReport& report);

// Sums for one dataset.
struct DatasetTotals {
    ManifestState state =
        ManifestState::kUnknown;  // ready if any report says so; else failed, listing, unknown
    std::string error;            // of a failed listing, else of the last failed fetch
    std::uint64_t objects_listed = 0;
    std::string revision;
    std::uint64_t samples = 0;
    Bytes total{};
    std::map<std::string, Bytes> resident;  // by node, from its leader
    std::uint64_t resident_samples = 0;
    std::map<std::string, std::string> troubles;  // by node: why it keeps less than granted

    [[nodiscard]] Bytes resident_bytes() const;

    bool operator==(const DatasetTotals&) const = default;
};

struct Totals {
    std::size_t fresh_reports = 0;
    std::optional<WallTime> newest;                 // when the newest report arrived, fresh or not
    std::map<std::string, DatasetTotals> datasets;  // by uid
    Bytes cache_bytes{};                            // read without using the link to the origin
    Bytes origin_bytes{};  // read over that link: prefetched, on demand, or bypassing the sidecars
    std::uint64_t epoch = 0;           // the newest of any rank
    std::uint64_t epoch_samples = 0;   // of all ranks; 0: some rank's count is unknown
    std::uint64_t epoch_position = 0;  // of the ranks that read this epoch

    bool operator==(const Totals&) const = default;
};

// Sums the counters of all reports, but bytes on nodes and states of fresh reports only: the
// counters of a stopped sidecar stay valid, its knowledge of the node does not. The order of
// `reports` does not matter.
Totals total_of(const std::vector<SidecarReport>& reports, const Moment& now);

// Share of the read bytes that did not use the link to the origin for that read, in percent,
// rounded down; nullopt before the first read. A sample that was fetched for this read counts as
// using the link.
std::optional<std::int64_t> hit_percent(Bytes from_cache, Bytes from_origin);

// A dataset's troubles: "Node n1 keeps nothing new: disk full. And 2 more nodes."; empty if none.
std::string tell_troubles(const DatasetTotals& dataset);

// Percent as a ratio: 62 becomes "0.62".
std::string ratio_text(std::int64_t percent);

}  // namespace stoker::control

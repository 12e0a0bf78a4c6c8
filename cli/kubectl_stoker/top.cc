#include "cli/kubectl_stoker/top.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "cli/kubectl_stoker/table.h"
#include "operator/core/workload/build_job.h"

namespace stoker::cli {

namespace {

using control::TrainingJob;

constexpr double kSecondsPerHour = 3600;

std::optional<double> number(const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return !text.empty() && read.ec == std::errc{} && read.ptr == end ? std::optional(value)
                                                                      : std::nullopt;
}

// Formats "0.35" as "35%".
std::string percent(const std::string& ratio) {
    const auto value = number(ratio);
    return value ? fmt::format("{:.0f}%", *value * 100) : "";
}

std::int64_t epoch_samples(const TrainingJob& job) {
    std::int64_t sum = 0;
    for (const control::JobDatasetStatus& dataset : job.status.datasets) {
        sum += dataset.samples;
    }
    return sum;
}

// Without a cache, the slower of origin and trainers sets the epoch time.
std::optional<double> epoch_seconds_without(const TrainingJob& job) {
    const auto& profile = job.status.profile;
    const std::int64_t samples = epoch_samples(job);
    if (!profile || profile->samples_per_second_remote <= 0 || samples == 0) {
        return std::nullopt;
    }
    const double origin =
        static_cast<double>(samples) / static_cast<double>(profile->samples_per_second_remote);
    return std::max(origin, static_cast<double>(profile->compute_seconds_per_epoch));
}

void add_savings(const TrainingJob& job, TopRow& row) {
    const auto& cache = job.status.cache;
    const auto without = epoch_seconds_without(job);
    const auto saved =
        cache && cache->benefit ? number(cache->benefit->seconds_saved_per_epoch) : std::nullopt;
    if (!without || !saved || *saved >= *without || *saved < 0) {
        return;
    }
    const double with = *without - *saved;
    row.speedup = *without / with;
    row.saved_per_hour =
        *saved / with * kSecondsPerHour * static_cast<double>(std::max<std::int64_t>(row.gpus, 1));
}

TopRow row_of(const TrainingJob& job) {
    TopRow row;
    row.job = job.meta.key();
    const auto* state = control::find_condition(job.status.conditions, "Finished");
    row.state = state == nullptr ? "" : state->reason;
    row.gpus = control::gpus_per_node(job.spec.trainer) * job.spec.trainer.node_count;
    row.cache = job.status.columns.cache;
    row.hit = job.status.columns.hit;
    row.origin = job.status.columns.origin;
    row.wait = job.status.profile ? percent(job.status.profile->wait_share) : "";
    const auto* allocated = control::find_condition(job.status.conditions, "CacheAllocated");
    row.reason = allocated == nullptr ? "" : allocated->reason;
    add_savings(job, row);
    return row;
}

web::json::value number_or_null(const std::optional<double>& value) {
    return value ? web::json::value::number(*value) : web::json::value::null();
}

std::vector<std::string> cells_of(const TopRow& row) {
    return {
        row.job.name,
        row.gpus == 0 ? "" : fmt::format("{}", row.gpus),
        row.saved_per_hour ? fmt::format("{:.0f}", *row.saved_per_hour) : "",
        row.speedup ? fmt::format("{:.2f}x", *row.speedup) : "",
        row.cache,
        row.hit,
        row.origin,
        row.wait,
        row.state.empty() || row.state == "Running" ? row.reason : row.state};
}

}  // namespace

std::vector<TopRow> top_rows(const std::vector<TrainingJob>& jobs) {
    std::vector<TopRow> rows;
    for (const TrainingJob& job : jobs) {
        if (!control::is_true(job.status.conditions, "Finished")) {
            rows.push_back(row_of(job));
        }
    }
    std::ranges::sort(rows, [](const TopRow& a, const TopRow& b) {
        const double left = a.saved_per_hour.value_or(-1);
        const double right = b.saved_per_hour.value_or(-1);
        return std::tie(right, a.job) < std::tie(left, b.job);
    });
    return rows;
}

std::string top_text(const std::vector<TopRow>& rows, bool with_namespace) {
    std::vector<Table::Column> columns;
    if (with_namespace) {
        columns.push_back({"NAMESPACE"});
    }
    columns.push_back({"NAME"});
    for (const char* title : {"GPUS", "SAVED", "SPEEDUP", "CACHE", "HIT", "ORIGIN", "WAITS"}) {
        columns.push_back({title, Table::Align::kRight});
    }
    columns.push_back({"WHY"});
    Table table(std::move(columns));
    double sum = 0;
    for (const TopRow& row : rows) {
        std::vector<std::string> cells;
        if (with_namespace) {
            cells.push_back(row.job.ns);
        }
        const std::vector<std::string> own = cells_of(row);
        cells.insert(cells.end(), own.begin(), own.end());
        table.add(std::move(cells));
        sum += row.saved_per_hour.value_or(0);
    }
    const std::string legend = fmt::format(
        "\nSAVED: GPU-seconds an hour, predicted from what was measured.\n"
        "Together {:.0f}, as if {:.1f} more GPUs ran.\n",
        sum,
        sum / kSecondsPerHour);
    return table.text() + legend;
}

std::string top_json(const std::vector<TopRow>& rows) {
    using web::json::value;
    value list = value::array();
    for (const TopRow& row : rows) {
        value item = value::object(true);
        item["namespace"] = value::string(row.job.ns);
        item["name"] = value::string(row.job.name);
        item["state"] = value::string(row.state);
        item["gpus"] = value::number(row.gpus);
        item["gpuSecondsSavedPerHour"] = number_or_null(row.saved_per_hour);
        item["speedup"] = number_or_null(row.speedup);
        item["cache"] = value::string(row.cache);
        item["hit"] = value::string(row.hit);
        item["origin"] = value::string(row.origin);
        item["wait"] = value::string(row.wait);
        item["reason"] = value::string(row.reason);
        list[list.size()] = item;
    }
    value root = value::object(true);
    root["jobs"] = list;
    return root.serialize() + "\n";
}

}  // namespace stoker::cli

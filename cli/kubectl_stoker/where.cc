#include "cli/kubectl_stoker/where.h"

#include <algorithm>
#include <tuple>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "cli/kubectl_stoker/table.h"
#include "common/base/saturating.h"

namespace stoker::cli {

namespace {

using control::Dataset;
using control::DatasetPlacement;

WhereRow row_of(const Dataset& dataset, const DatasetPlacement& placement) {
    WhereRow row{dataset.meta.key(), placement.pool, placement.node};
    row.bytes = placement.bytes;
    row.samples = placement.samples;
    const std::int64_t all = dataset.status.samples.value_or(0);
    if (all > 0) {
        row.percent = std::min<std::int64_t>(multiply_saturated(placement.samples, 100) / all, 100);
    }
    return row;
}

std::vector<std::string> cells_of(const WhereRow& row) {
    if (row.node.empty()) {
        return {row.dataset.name, "", "", "", "", ""};
    }
    return {
        row.dataset.name,
        row.pool,
        row.node,
        to_string(bytes_of(row.bytes)),
        row.percent ? fmt::format("{}%", *row.percent) : "",
        fmt::format("{}", row.samples)};
}

}  // namespace

std::vector<WhereRow> where_rows(const std::vector<Dataset>& datasets) {
    std::vector<WhereRow> rows;
    for (const Dataset& dataset : datasets) {
        for (const DatasetPlacement& placement : dataset.status.placements) {
            rows.push_back(row_of(dataset, placement));
        }
        if (dataset.status.placements.empty()) {
            rows.push_back({dataset.meta.key(), "", ""});
        }
    }
    std::ranges::sort(rows, [](const WhereRow& a, const WhereRow& b) {
        return std::tie(a.dataset, b.bytes, a.node, a.pool) <
               std::tie(b.dataset, a.bytes, b.node, b.pool);
    });
    return rows;
}

std::string where_text(const std::vector<WhereRow>& rows, bool with_namespace) {
    std::vector<Table::Column> columns;
    if (with_namespace) {
        columns.push_back({"NAMESPACE"});
    }
    for (const char* title : {"DATASET", "POOL", "NODE"}) {
        columns.push_back({title});
    }
    for (const char* title : {"CACHED", "CACHED%", "SAMPLES"}) {
        columns.push_back({title, Table::Align::kRight});
    }
    Table table(std::move(columns));
    for (const WhereRow& row : rows) {
        std::vector<std::string> cells = cells_of(row);
        if (with_namespace) {
            cells.insert(cells.begin(), row.dataset.ns);
        }
        table.add(std::move(cells));
    }
    return table.text();
}

std::string where_json(const std::vector<WhereRow>& rows) {
    using web::json::value;
    value list = value::array();
    for (const WhereRow& row : rows) {
        if (row.node.empty()) {
            continue;
        }
        value item = value::object(true);
        item["namespace"] = value::string(row.dataset.ns);
        item["dataset"] = value::string(row.dataset.name);
        item["pool"] = value::string(row.pool);
        item["node"] = value::string(row.node);
        item["cachedBytes"] = value::number(row.bytes);
        item["cachedSamples"] = value::number(row.samples);
        item["cachedPercentage"] = row.percent ? value::number(*row.percent) : value::null();
        list[list.size()] = item;
    }
    value root = value::object(true);
    root["placements"] = list;
    return root.serialize() + "\n";
}

}  // namespace stoker::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/dataset.h"

namespace stoker::cli {

// One line of `kubectl stoker where`: a Dataset on a node, or a Dataset that no node holds.
struct WhereRow {
    control::ObjectKey dataset;
    std::string pool;
    std::string node;  // empty: no node
    std::int64_t bytes = 0;
    std::int64_t samples = 0;
    std::optional<std::int64_t> percent{};  // of the Dataset's samples; none: not known
};

// Rows sorted by Dataset; within one, nodes with the most bytes first, then by name.
std::vector<WhereRow> where_rows(const std::vector<control::Dataset>& datasets);

std::string where_text(const std::vector<WhereRow>& rows, bool with_namespace);

std::string where_json(const std::vector<WhereRow>& rows);

}  // namespace stoker::cli

#pragma once

#include <string>
#include <vector>

namespace stoker::cli {

// Prints columns as kubectl does: capital titles, three spaces between columns, no trailing spaces.
// Widths count UTF-8 characters.
class Table {
public:
    enum class Align : std::uint8_t { kLeft, kRight };

    struct Column {
        std::string title;
        Align align = Align::kLeft;
    };

    explicit Table(std::vector<Column> columns);

    // Needs one cell per column; an empty cell prints as "-".
    void add(std::vector<std::string> cells);

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    // All lines, each with `indent` before it and a line break after it.
    [[nodiscard]] std::string text(const std::string& indent = "") const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace stoker::cli

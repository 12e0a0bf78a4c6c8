#pragma once

#include <string>
#include <vector>

namespace stoker::cli {

// Columns as kubectl prints them: capital titles, three spaces between, no space at the end of a
// line. UTF-8 counts by characters.
class Table {
public:
    enum class Align : std::uint8_t { kLeft, kRight };

    struct Column {
        std::string title;
        Align align = Align::kLeft;
    };

    explicit Table(std::vector<Column> columns);

    // As many cells as columns; an empty one prints as "-".
    void add(std::vector<std::string> cells);

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    // Each line with `indent` in front and a line break at its end.
    [[nodiscard]] std::string text(const std::string& indent = "") const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace stoker::cli

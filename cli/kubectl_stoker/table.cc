#include "cli/kubectl_stoker/table.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::cli {

namespace {

constexpr std::size_t kGap = 3;

// Counts characters, not bytes: the bytes that begin a UTF-8 character.
std::size_t width(const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace

Table::Table(std::vector<Column> columns)
    : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
    STOKER_CHECK(cells.size() == columns_.size(), "one cell for each column");
    for (std::string& cell : cells) {
        if (cell.empty()) {
            cell.assign(1, '-');
        }
    }
    rows_.push_back(std::move(cells));
}

std::string Table::text(const std::string& indent) const {
    std::vector<std::string> titles;
    for (const Column& column : columns_) {
        titles.push_back(column.title);
    }
    std::vector<std::vector<std::string>> lines{titles};
    lines.insert(lines.end(), rows_.begin(), rows_.end());
    std::vector<std::size_t> widths(columns_.size());
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], width(line[i]));
        }
    }
    std::string result;
    for (const auto& line : lines) {
        std::string text = indent;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string space(widths[i] - width(line[i]), ' ');
            text += columns_[i].align == Align::kRight ? space + line[i] : line[i] + space;
            text.append(kGap, ' ');
        }
        text.erase(text.find_last_not_of(' ') + 1);
        result += text + '\n';
    }
    return result;
}

}  // namespace stoker::cli

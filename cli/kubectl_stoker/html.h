#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::cli {

// Escapes text for HTML, also inside quoted attributes. Control characters, which HTML and XML
// forbid, become U+FFFD. Pure.
std::string escaped(std::string_view text);

// A table with one row of titles. Cells are escaped; columns listed in `right` are right-aligned.
// An empty table is "".
struct HtmlTable {
    std::vector<std::string> titles;
    std::vector<std::vector<std::string>> rows;
    std::vector<std::size_t> right{};
};

std::string html_of(const HtmlTable& table);

}  // namespace stoker::cli

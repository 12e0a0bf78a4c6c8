#include "cli/kubectl_stoker/html.h"

#include <algorithm>

#include <fmt/format.h>

namespace stoker::cli {

std::string escaped(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            case '\'':
                result += "&#39;";
                break;
            case '\n':
            case '\t':
                result += c;
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                    result += "\xef\xbf\xbd";
                } else {
                    result += c;
                }
        }
    }
    return result;
}

std::string html_of(const HtmlTable& table) {
    if (table.rows.empty()) {
        return "";
    }
    const auto cell = [&table](std::string_view tag, std::size_t column, std::string_view text) {
        const bool is_right = std::ranges::find(table.right, column) != table.right.end();
        return fmt::format("<{0}{1}>{2}</{0}>", tag, is_right ? " class=\"r\"" : "", escaped(text));
    };
    std::string html = "<table>\n<tr>";
    for (std::size_t i = 0; i < table.titles.size(); ++i) {
        html += cell("th", i, table.titles[i]);
    }
    html += "</tr>\n";
    for (const std::vector<std::string>& row : table.rows) {
        html += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) {
            html += cell("td", i, row[i]);
        }
        html += "</tr>\n";
    }
    return html + "</table>\n";
}

}  // namespace stoker::cli

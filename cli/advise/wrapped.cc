#include "cli/advise/wrapped.h"

#include <algorithm>

namespace stoker::cli {

std::string wrapped(const std::string& text, const std::string& indent) {
    constexpr std::size_t kColumns = 90;
    std::string result;
    std::string line = indent;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, end - at);
        if (line.size() + word.size() + 1 > kColumns && line.size() > indent.size()) {
            result += line + '\n';
            line = indent;
        }
        line += (line.size() > indent.size() ? " " : "") + word;
        at = end + 1;
    }
    return result + line + '\n';
}

}  // namespace stoker::cli

#include "common/base/read_file.h"

#include <fstream>
#include <sstream>
#include <utility>

namespace stoker {

Result<std::string> read_file(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream text;
    text << file.rdbuf();  // an empty file sets failbit, which is harmless
    if (!file.is_open() || file.bad()) {
        return fail(ErrorCode::kNotFound, "cannot read " + path);
    }
    return std::move(text).str();
}

Result<std::string> read_filled_file(const std::string& path) {
    STOKER_TRY(std::string text, read_file(path));
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    if (last == std::string::npos) {
        return fail(ErrorCode::kNotFound, path + " is empty");
    }
    text.resize(last + 1);
    return text;
}

}  // namespace stoker

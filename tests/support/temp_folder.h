#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/base/check.h"

namespace stoker::test {

// A new folder in $TMPDIR or /tmp; the destructor deletes it with its contents.
class TempFolder {
public:
    TempFolder() {
        path_ = (std::filesystem::temp_directory_path() / "stoker-XXXXXX").string();
        STOKER_CHECK(::mkdtemp(path_.data()) != nullptr, "cannot make a temporary folder");
    }

    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    ~TempFolder() {
        std::error_code ignored;  // a leftover folder in /tmp does not fail a test
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace stoker::test

#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/base/check.h"

namespace stoker::test {

// A fresh folder that goes away with its contents. In $TMPDIR or /tmp.
class TempFolder {
public:
    TempFolder() {
        path_ = (std::filesystem::temp_directory_path() / "stoker-XXXXXX").string();
        STOKER_CHECK(::mkdtemp(path_.data()) != nullptr, "cannot make a temporary folder");
    }

    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    ~TempFolder() {
        std::error_code ignored;  // a left-over in /tmp is not worth a failed test
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace stoker::test

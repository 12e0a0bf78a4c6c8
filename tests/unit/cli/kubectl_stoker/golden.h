#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace stoker::cli {

// Compares with tests/unit/cli/kubectl_stoker/golden/<name>; with STOKER_UPDATE_GOLDEN set,
// rewrites that file for review before commit.
inline void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string{STOKER_GOLDEN_FOLDER} + "/" + name;
    if (std::getenv("STOKER_UPDATE_GOLDEN") != nullptr) {
        std::ofstream{path} << text;
    }
    std::ifstream file{path};
    std::ostringstream want;
    want << file.rdbuf();
    EXPECT_EQ(text, want.str()) << path;
}

}  // namespace stoker::cli

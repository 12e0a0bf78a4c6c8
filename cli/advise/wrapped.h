#pragma once

#include <string>

namespace stoker::cli {

// Breaks the text between words into lines of at most 90 columns, each with `indent` before it and a
// line break after it.
std::string wrapped(const std::string& text, const std::string& indent);

}  // namespace stoker::cli

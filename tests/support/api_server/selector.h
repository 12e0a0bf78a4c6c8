#pragma once

#include <string>
#include <string_view>

#include "operator/api/json.h"

namespace stoker::test {

// Selects objects of a list or watch. Labels: "a=b", "a==b", "a!=b", "a", "!a", "a in (b,c)",
// "a notin (b)", joined by commas. Fields: "metadata.name=x", "spec.nodeName!=y": a path into the
// object; absent fields count as "".
struct Selector {
    std::string ns;
    std::string labels;
    std::string fields;
};

bool matches(const Selector& selector, const web::json::value& object);

}  // namespace stoker::test

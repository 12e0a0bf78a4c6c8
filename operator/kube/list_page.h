#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"
#include "operator/api/json.h"

namespace stoker::control {

// A page of a list without its items.
struct ListPage {
    std::string resource_version;
    std::string continue_token;  // "": it is the last page
};

// Calls `visit` for each item of a Kubernetes list, in order, during parsing: only one item is in
// memory at a time (docs/adr/0014-libraries.md). An item that is not a valid object is passed as
// null. kInvalidArgument: not JSON, or not a list; items may have been visited by then. Pure.
Result<ListPage> read_list(
    const std::string& text, const std::function<void(web::json::value&& item)>& visit);

}  // namespace stoker::control

#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"
#include "operator/api/json.h"

namespace stoker::control {

// What a page of a list says besides its items.
struct ListPage {
    std::string resource_version;
    std::string continue_token;  // "": it is the last page
};

// Calls `visit` for each item of a Kubernetes list, in order, while the text is read: only one item
// is parsed at a time (docs/adr/0014-libraries.md). An item that is no valid object comes as null.
// kInvalidArgument: not JSON, or no list; items may have been visited by then. Pure.
Result<ListPage> read_list(
    const std::string& text, const std::function<void(web::json::value&& item)>& visit);

}  // namespace stoker::control

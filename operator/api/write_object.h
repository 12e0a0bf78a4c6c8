#pragma once

#include <string>
#include <string_view>

#include "operator/api/condition.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"

// Writers for the parts of an object that all kinds share.
namespace stoker::control {

// A flag that is omitted when false.
inline Json if_true(bool flag) {
    return flag ? Json(true) : Json();
}

Json write_condition(const Condition& condition);

// Metadata of an object that we create: name, namespace, labels, annotations and owners.
Json write_meta(const ObjectMeta& meta);

// {"apiVersion", "kind", "metadata": {name, namespace, uid}, "status": status}: the body of an
// apply to /status. With the uid it cannot recreate a deleted object; with a `resource_version` it
// fails if the object has changed since.
Json status_body(
    std::string_view kind,
    const ObjectMeta& meta,
    const Json& status,
    std::string_view api_version = "stoker.dev/v1alpha1",
    const std::string& resource_version = {});

}  // namespace stoker::control

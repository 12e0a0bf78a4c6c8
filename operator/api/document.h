#pragma once

#include <set>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"

// How objects of every kind are read. T: TrainingJob, Dataset, CachePool, CacheQuota, Job, Pod,
// Node, Workload, ResourceFlavor, PriorityClass, or ObjectMeta for the metadata of any kind.
namespace stoker::control {

// Reads an object as the API server sends it; defaults as in the CRD; unknown fields are passed
// over. kInvalidArgument: no object, or a field of another type; the message has every complaint
// with its path.
template <class T>
Result<T> read_document(const Json& json);

template <>
Result<ObjectMeta> read_document(const Json& json);

// The same from text. kInvalidArgument: not JSON, or as above.
template <class T>
Result<T> parse_document(std::string_view text) {
    STOKER_TRY(const Json json, Json::parse(text));
    return read_document<T>(json);
}

// Every field that read_document() knows ("spec.datasets[].name"); a name that ends in ".*" is
// passed on unread.
template <class T>
std::set<std::string> known_fields();

}  // namespace stoker::control

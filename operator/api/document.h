#pragma once

#include <set>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"

// Parses objects of every kind. T: TrainingJob, Dataset, CachePool, CacheQuota, Job, Pod, Node,
// Workload, ResourceFlavor, PriorityClass, or ObjectMeta for the metadata of any kind.
namespace stoker::control {

// Parses an object from the API server; defaults as in the CRD; unknown fields are ignored.
// kInvalidArgument: not an object, or a field of another type; the message lists every mistake with
// its path.
template <class T>
Result<T> read_document(const Json& json);

template <>
Result<ObjectMeta> read_document(const Json& json);

// As above, from text. kInvalidArgument: not JSON, or as above.
template <class T>
Result<T> parse_document(std::string_view text) {
    STOKER_TRY(const Json json, Json::parse(text));
    return read_document<T>(json);
}

// Every field that read_document() knows ("spec.datasets[].name"); a name that ends in ".*" is
// passed through unparsed.
template <class T>
std::set<std::string> known_fields();

}  // namespace stoker::control

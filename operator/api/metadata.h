#pragma once

#include <string_view>

#include "common/base/result.h"
#include "operator/api/meta.h"

namespace stoker::control {

// The metadata of an object of any kind. kInvalidArgument: not JSON, or a field of another type.
Result<ObjectMeta> parse_metadata(std::string_view json);

}  // namespace stoker::control

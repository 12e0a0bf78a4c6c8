#pragma once

#include <string_view>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/sample_format.h"

namespace stoker::domain {

// Adds the rows of an object, each a sample, named by its number in the object. Requires: 1 <= rows.bytes.
// kInvalidArgument: the object does not end with a row, or has too many. Pure.
Status add_rows(const ListedObject& object, const RecordRows& rows, Listing& samples);

}  // namespace stoker::domain

#pragma once

#include "common/base/result.h"
#include "operator/api/json.h"

namespace stoker::test {

// RFC 7396: null removes, objects merge, other values replace.
void merge_patch(web::json::value& document, const web::json::value& patch);

// RFC 6902: test, add, remove, replace. Errors: kInvalidArgument if a path or a test fails;
// `document` is then partly patched.
Status json_patch(web::json::value& document, const web::json::value& operations);

// As json_patch(), for operations that must fit; returns the patched copy.
control::Json patched(const control::Json& document, const control::Json& operations);

}  // namespace stoker::test

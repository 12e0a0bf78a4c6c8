#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/api/json.h"

// Server-side apply's field sets, simplified: the leaf fields of a document that managers own. Lists
// of objects with a well-known key (conditions by type, containers by name, …) and finalizers merge
// by item; all other lists are atomic.
namespace stoker::test {

// Steps from the root: "name" of a field, "[name=x]" of a keyed item, "[=x]" of a set's value.
using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;

// Key: manager, subresource and operation. Value: the fields that it owns.
using FieldOwners = std::map<std::string, FieldSet>;

FieldSet leaf_paths(const web::json::value& document);

// null: no value at this path.
const web::json::value* value_at(const web::json::value& document, const FieldPath& path);

void erase_at(web::json::value& document, const FieldPath& path);

// Sets every leaf of `patch` in `document`; finds or appends items of keyed lists.
void merge_fields(web::json::value& document, const web::json::value& patch);

// The leaves whose values differ between two documents.
FieldSet changed_paths(const web::json::value& before, const web::json::value& after);

// "spec.containers[name=a].image"
std::string to_text(const FieldPath& path);

}  // namespace stoker::test

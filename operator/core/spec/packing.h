#pragma once

#include <string>

#include "operator/api/dataset.h"

// The chunks of a Dataset with spec.packing, and whether they are complete (docs/adr/0029). Pure.
namespace stoker::control {

// A condition of a Dataset with spec.packing.
inline constexpr const char* kPacked = "Packed";

// Sixteen hex digits of a hash over the settings that decide the chunks' content: place of the raw
// files, chunk size, order and seed. Precondition: the spec has `packing`.
std::string packing_digest(const DatasetSpec& spec);

// Whether the chunks are complete, by the status. True without spec.packing: then the user packed
// the chunks.
bool is_packed(const Dataset& dataset);

// Sentences on a Dataset that is not packed. `foreign`: the text is for users of another namespace.
std::string tell_packing(const Dataset& dataset, bool foreign = false);

}  // namespace stoker::control

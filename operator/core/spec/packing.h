#pragma once

#include <string>

#include "operator/api/dataset.h"

// Reads from a Dataset which pack spec.packing asks for, and whether it is complete (docs/adr/0029). Pure.
namespace stoker::control {

// A condition of a Dataset with spec.packing.
inline constexpr const char* kPacked = "Packed";

// Sixteen hex digits of a hash of what decides the chunks' content: the place of the raw files, the
// size of chunks, order and seed. The spec has `packing`.
std::string packing_digest(const DatasetSpec& spec);

// Whether the chunks are complete, by the status. True without spec.packing: then somebody else made
// them.
bool is_packed(const Dataset& dataset);

// Sentences on a Dataset that is not packed. `foreign`: for people of another namespace.
std::string tell_packing(const Dataset& dataset, bool foreign = false);

}  // namespace stoker::control

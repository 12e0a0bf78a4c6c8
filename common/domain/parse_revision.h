#pragma once

#include <optional>
#include <string_view>

#include "common/domain/ids.h"

namespace stoker::domain {

// The inverse of to_string(): exactly sixteen lower-case hex digits, so that a revision has one
// spelling. nullopt: anything else.
std::optional<RevisionId> parse_revision(std::string_view digits);

}  // namespace stoker::domain

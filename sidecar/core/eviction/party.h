#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/strong.h"

namespace stoker::sidecar {

// A unit of accounting for demands, plans and bytes: the dataset's own namespace, one guest,
// or the other nodes that share the dataset.
using Party = Strong<std::uint8_t, struct PartyTag>;
inline constexpr Party kOwnParty{0};
inline constexpr Party kPeerParty{255};  // other nodes of the group (core/placement.h)
inline constexpr std::size_t kPartiesMax = 256;

}  // namespace stoker::sidecar

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/base/prng.h"
#include "common/domain/listing.h"

namespace stoker::domain {

// `count` random objects: one key in a hundred has up to 60,000 bytes, so that a listing needs
// several of its memory blocks.
inline std::vector<ListedObject> any_objects(Prng& luck, std::size_t count) {
    std::vector<ListedObject> objects;
    for (std::size_t i = 0; i < count; ++i) {
        const auto key_bytes = luck.below(100) == 0 ? luck.below(60'000) : luck.below(80);
        objects.push_back(
            {std::string(key_bytes, static_cast<char>('a' + luck.below(20))) +
                 fmt::format("/{}", luck()),
             luck.below(1000),
             std::string(1 + luck.below(60), 'e')});
    }
    return objects;
}

}  // namespace stoker::domain

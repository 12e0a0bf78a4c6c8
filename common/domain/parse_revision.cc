#include "common/domain/parse_revision.h"

#include <charconv>
#include <cstdint>

namespace stoker::domain {

std::optional<RevisionId> parse_revision(std::string_view digits) {
    std::uint64_t value = 0;
    const auto* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
    if (error != std::errc{} || stop != end || to_string(RevisionId{value}) != digits) {
        return std::nullopt;
    }
    return RevisionId{value};
}

}  // namespace stoker::domain

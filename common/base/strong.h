#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <utility>

namespace stoker {

// A value of type `Rep` with its own type, so that ids of different kinds cannot be mixed up:
// `struct SegmentSeqTag; using SegmentSeq = Strong<std::uint32_t, SegmentSeqTag>;`. Explicit to
// construct, ordered, hashable; arithmetic only through value().
template <class Rep, class Tag>
class Strong {
public:
    using rep = Rep;

    constexpr Strong() = default;

    constexpr explicit Strong(Rep value)
        : value_(std::move(value)) {}

    [[nodiscard]] constexpr const Rep& value() const { return value_; }

    auto operator<=>(const Strong&) const = default;

private:
    Rep value_{};
};

}  // namespace stoker

template <class Rep, class Tag>
struct std::hash<stoker::Strong<Rep, Tag>> {
    std::size_t operator()(const stoker::Strong<Rep, Tag>& id) const noexcept {
        return std::hash<Rep>{}(id.value());
    }
};

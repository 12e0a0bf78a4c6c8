#pragma once

#include <cstdint>
#include <map>

namespace stoker::sidecar {

// Amounts of a resource held by owners, with one limit per owner and one in total. Pure value; not
// thread-safe.
class Holdings {
public:
    Holdings(std::uint64_t total_max, std::uint64_t owner_max)
        : total_max_(total_max),
          owner_max_(owner_max) {}

    // Takes `amount`. False, without effect: that would exceed the owner's or the total limit.
    bool take(std::uint64_t owner, std::uint64_t amount) {
        const auto found = held_.find(owner);
        const std::uint64_t own = found == held_.end() ? 0 : found->second;
        if (amount > owner_max_ - own || amount > total_max_ - total_) {
            return false;
        }
        total_ += amount;
        if (amount > 0) {
            held_[owner] = own + amount;
        }
        return true;
    }

    // Gives back `amount`, or all that the owner holds if that is less.
    void give(std::uint64_t owner, std::uint64_t amount) {
        const auto found = held_.find(owner);
        if (found == held_.end()) {
            return;
        }
        const std::uint64_t given = amount < found->second ? amount : found->second;
        total_ -= given;
        found->second -= given;
        if (found->second == 0) {
            held_.erase(found);
        }
    }

    [[nodiscard]] std::uint64_t total() const { return total_; }

private:
    std::uint64_t total_max_;
    std::uint64_t owner_max_;
    std::uint64_t total_ = 0;
    std::map<std::uint64_t, std::uint64_t> held_;  // never above owner_max_, never 0
};

}  // namespace stoker::sidecar

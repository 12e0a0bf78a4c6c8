#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/check.h"

// Oracle for the guarantee of nominal quotas (docs/design/allocation.md, step 2), computed without
// the planner's code. For few namespaces: it enumerates all sets of them.
namespace stoker::control {

struct OwedWorld {
    struct Namespace {
        double nominal = 0;
        double taken = 0;           // bytes of the quota that minimums use
        std::vector<double> wants;  // usable bytes beyond its minimums, by node
    };

    std::vector<Namespace> namespaces;
    std::vector<double> rooms;  // by node: room beyond the minimums
};

class OwedOracle {
public:
    explicit OwedOracle(OwedWorld world)
        : world_(std::move(world)),
          owed_(world_.namespaces.size(), 0),
          is_stuck_(world_.namespaces.size(), false) {
        while (std::ranges::find(is_stuck_, false) != is_stuck_.end()) {
            rise();
        }
    }

    // Bytes owed to each namespace, beyond its minimums.
    [[nodiscard]] const std::vector<double>& owed() const { return owed_; }

    // Whether a namespace gets less than it can use within its quota.
    [[nodiscard]] bool is_contended() const {
        for (std::size_t i = 0; i < owed_.size(); ++i) {
            if (owed_[i] < at_level(i, 1) - kNothing) {
                return true;
            }
        }
        return false;
    }

private:
    static constexpr double kNothing = 1e-6;

    // Raises all namespaces that can get more bytes, by the same share of their quotas, until one
    // of them can get no more ("blocked").
    void rise() {
        double low = 0;
        double high = 1;
        if (fits(1)) {
            low = 1;
        }
        for (int i = 0; i < 60 && low < 1; ++i) {
            const double middle = (low + high) / 2;
            (fits(middle) ? low : high) = middle;
        }
        const std::vector<double> now = levels(low);
        const std::vector<double> more = levels(std::min(1.0, low + 1e-6));
        bool any = false;
        for (std::size_t set = 1; set < std::size_t{1} << owed_.size(); ++set) {
            const bool is_tight = low >= 1 || sum(set, more) > most(set) + kNothing / 2;
            for (std::size_t i = 0; i < owed_.size() && is_tight; ++i) {
                if (has(set, i) && !is_stuck_[i]) {
                    is_stuck_[i] = true;
                    owed_[i] = now[i];
                    any = true;
                }
            }
        }
        STOKER_CHECK(any, "each round blocks a namespace");
    }

    static bool has(std::size_t set, std::size_t i) { return (set >> i & 1U) != 0; }

    [[nodiscard]] double at_level(std::size_t i, double level) const {
        const OwedWorld::Namespace& it = world_.namespaces[i];
        double wanted = 0;
        for (const double want : it.wants) {
            wanted += want;
        }
        return std::clamp(level * it.nominal - it.taken, 0.0, wanted);
    }

    [[nodiscard]] std::vector<double> levels(double level) const {
        std::vector<double> result;
        for (std::size_t i = 0; i < owed_.size(); ++i) {
            result.push_back(is_stuck_[i] ? owed_[i] : at_level(i, level));
        }
        return result;
    }

    static double sum(std::size_t set, const std::vector<double>& amounts) {
        double result = 0;
        for (std::size_t i = 0; i < amounts.size(); ++i) {
            result += has(set, i) ? amounts[i] : 0;
        }
        return result;
    }

    // The most that a set of namespaces can hold together.
    [[nodiscard]] double most(std::size_t set) const {
        double result = 0;
        for (std::size_t node = 0; node < world_.rooms.size(); ++node) {
            double wanted = 0;
            for (std::size_t i = 0; i < owed_.size(); ++i) {
                wanted += has(set, i) ? world_.namespaces[i].wants[node] : 0;
            }
            result += std::min(wanted, world_.rooms[node]);
        }
        return result;
    }

    [[nodiscard]] bool fits(double level) const {
        const std::vector<double> amounts = levels(level);
        for (std::size_t set = 1; set < std::size_t{1} << owed_.size(); ++set) {
            if (sum(set, amounts) > most(set) + kNothing) {
                return false;
            }
        }
        return true;
    }

    OwedWorld world_;
    std::vector<double> owed_;
    std::vector<bool> is_stuck_;
};

}  // namespace stoker::control

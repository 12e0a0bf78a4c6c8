#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace stoker::control {

enum class ConditionStatus : std::uint8_t { kFalse, kTrue, kUnknown };

std::string_view to_string(ConditionStatus status);

// metav1.Condition. `reason` is one CamelCase word for programs, `message` one sentence for people.
struct Condition {
    std::string type;
    ConditionStatus status = ConditionStatus::kUnknown;
    std::int64_t observed_generation = 0;
    WallTime last_transition{};
    std::string reason;
    std::string message;

    bool operator==(const Condition&) const = default;
};

// The condition of that type, or null. Valid until `conditions` changes.
const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);

// True only for a condition that exists and is True.
bool is_true(const std::vector<Condition>& conditions, std::string_view type);

// Replaces the condition of that type, or inserts it in the order of types. If the status changes,
// next.last_transition becomes its transition time; else the old time stays (api-conventions).
void set_condition(std::vector<Condition>& conditions, Condition next);

void drop_condition(std::vector<Condition>& conditions, std::string_view type);

}  // namespace stoker::control

#include "operator/api/condition.h"

#include <algorithm>
#include <utility>

namespace stoker::control {

std::string_view to_string(ConditionStatus status) {
    switch (status) {
        case ConditionStatus::kFalse:
            return "False";
        case ConditionStatus::kTrue:
            return "True";
        case ConditionStatus::kUnknown:
            break;
    }
    return "Unknown";
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
    const auto found = std::find_if(
        conditions.begin(), conditions.end(), [&](const Condition& c) { return c.type == type; });
    return found == conditions.end() ? nullptr : &*found;
}

bool is_true(const std::vector<Condition>& conditions, std::string_view type) {
    const Condition* found = find_condition(conditions, type);
    return found != nullptr && found->status == ConditionStatus::kTrue;
}

void set_condition(std::vector<Condition>& conditions, Condition next) {
    const auto place = std::lower_bound(
        conditions.begin(), conditions.end(), next.type, [](const Condition& c, const auto& type) {
            return c.type < type;
        });
    if (place == conditions.end() || place->type != next.type) {
        conditions.insert(place, std::move(next));
        return;
    }
    if (place->status == next.status) {
        next.last_transition = place->last_transition;
    }
    *place = std::move(next);
}

void drop_condition(std::vector<Condition>& conditions, std::string_view type) {
    std::erase_if(conditions, [type](const Condition& it) { return it.type == type; });
}

}  // namespace stoker::control

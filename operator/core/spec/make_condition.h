#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/meta.h"
#include "operator/core/spec/moment.h"

// Conditions that answer one question about an object: set_condition() adds type, generation and
// time. `reason` is one CamelCase word for programs; `message` holds sentences for people that are
// true for the present status.
namespace stoker::control {

inline Condition condition_of(ConditionStatus status, std::string reason, std::string message) {
    return {{}, status, 0, {}, std::move(reason), std::move(message)};
}

inline Condition holds(std::string reason, std::string message) {
    return condition_of(ConditionStatus::kTrue, std::move(reason), std::move(message));
}

inline Condition fails(std::string reason, std::string message) {
    return condition_of(ConditionStatus::kFalse, std::move(reason), std::move(message));
}

inline Condition unknown(std::string reason, std::string message) {
    return condition_of(ConditionStatus::kUnknown, std::move(reason), std::move(message));
}

inline Condition holds_if(bool is_true, std::string reason, std::string message) {
    return is_true ? holds(std::move(reason), std::move(message))
                   : fails(std::move(reason), std::move(message));
}

// Stores `answer` in `conditions` under `type`, with the object's generation and `now` as its
// transition time, in whole seconds as the API server stores times.
inline void set_condition(
    std::vector<Condition>& conditions,
    std::string type,
    Condition answer,
    const ObjectMeta& meta,
    const Moment& now) {
    answer.type = std::move(type);
    answer.observed_generation = meta.generation;
    answer.last_transition = std::chrono::floor<std::chrono::seconds>(now.wall);
    set_condition(conditions, std::move(answer));
}

}  // namespace stoker::control

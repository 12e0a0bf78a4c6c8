#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/meta.h"
#include "operator/core/spec/moment.h"

namespace stoker::control {

// What is thought of one question about an object, before it becomes a condition. `reason` is one
// CamelCase word for programs; `message` are sentences for people that are true for this very
// status.
struct Judgement {
    ConditionStatus status = ConditionStatus::kUnknown;
    std::string reason;
    std::string message;

    bool operator==(const Judgement&) const = default;
};

inline Judgement holds_if(bool holds, std::string reason, std::string message) {
    return {
        holds ? ConditionStatus::kTrue : ConditionStatus::kFalse,
        std::move(reason),
        std::move(message)};
}

// The judgement as a condition of the object's generation, judged now: whole seconds, as the API
// server keeps them.
inline void set_condition(
    std::vector<Condition>& conditions,
    std::string type,
    Judgement judgement,
    const ObjectMeta& meta,
    const Moment& now) {
    set_condition(
        conditions,
        {std::move(type),
         judgement.status,
         meta.generation,
         std::chrono::floor<std::chrono::seconds>(now.wall),
         std::move(judgement.reason),
         std::move(judgement.message)});
}

}  // namespace stoker::control

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"

namespace stoker::control {

// The object that an event is about.
struct EventSubject {
    std::string api_version;
    std::string kind;
    ObjectKey key;
    std::string uid;
    std::string resource_version;

    auto operator<=>(const EventSubject&) const = default;
};

enum class EventType : std::uint8_t { kNormal, kWarning };

// One event for `kubectl describe`. Texts are cut to the API's limits: note 1,024 bytes, the others
// 128.
struct EventNote {
    EventSubject regarding;
    std::optional<EventSubject> related;
    EventType type = EventType::kNormal;
    std::string reason;  // one CamelCase word
    std::string action;  // the action in progress, one CamelCase word
    std::string note;    // one sentence
};

// Source of Events: the program and its instance.
struct EventReporter {
    std::string controller;  // "stoker.dev/operator"
    std::string instance;    // the pod's name
};

// The events.k8s.io/v1 Event to POST.
Json event_object(
    const ObjectKey& key,
    const EventNote& note,
    WallTime first_seen,
    const EventReporter& reporter);

// Merge patch that turns the Event into a series.
Json event_series_patch(std::uint64_t count, WallTime last_seen);

}  // namespace stoker::control

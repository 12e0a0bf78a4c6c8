#include "operator/kube/event.h"

#include <utility>

#include <cpprest/json.h>

#include "common/base/utf8.h"
#include "operator/kube/micro_time.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

using web::json::value;

constexpr std::size_t kNoteBytesMax = 1024;
constexpr std::size_t kWordBytesMax = 128;

// Cuts at a character's border: half a UTF-8 sequence would be refused.
value limited(const std::string& text, std::size_t bytes_max) {
    return value(std::string{utf8_prefix(text, bytes_max)});
}

value reference(const EventSubject& subject) {
    auto out = value::object();
    out["apiVersion"] = value(subject.api_version);
    out["kind"] = value(subject.kind);
    out["name"] = value(subject.key.name);
    out["uid"] = value(subject.uid);
    if (!subject.key.ns.empty()) {
        out["namespace"] = value(subject.key.ns);
    }
    if (!subject.resource_version.empty()) {
        out["resourceVersion"] = value(subject.resource_version);
    }
    return out;
}

}  // namespace

Json event_object(
    const ObjectKey& key,
    const EventNote& note,
    WallTime first_seen,
    const EventReporter& reporter) {
    auto event = value::object();
    event["apiVersion"] = value(kinds::kEvents.api_version());
    event["kind"] = value(kinds::kEvents.kind);
    event["metadata"]["name"] = value(key.name);
    event["metadata"]["namespace"] = value(key.ns);
    event["eventTime"] = value(format_micro_time(first_seen));
    event["type"] = value(note.type == EventType::kNormal ? "Normal" : "Warning");
    event["reason"] = limited(note.reason, kWordBytesMax);
    event["action"] = limited(note.action, kWordBytesMax);
    event["note"] = limited(note.note, kNoteBytesMax);
    event["reportingController"] = limited(reporter.controller, kWordBytesMax);
    event["reportingInstance"] = limited(reporter.instance, kWordBytesMax);
    event["regarding"] = reference(note.regarding);
    if (note.related) {
        event["related"] = reference(*note.related);
    }
    return Json(std::move(event));
}

Json event_series_patch(std::uint64_t count, WallTime last_seen) {
    auto patch = value::object();
    patch["series"]["count"] = value(static_cast<std::int64_t>(count));
    patch["series"]["lastObservedTime"] = value(format_micro_time(last_seen));
    return Json(std::move(patch));
}

}  // namespace stoker::control

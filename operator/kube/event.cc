#include "operator/kube/event.h"

#include "common/base/utf8.h"
#include "operator/kube/micro_time.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

constexpr std::size_t kNoteBytesMax = 1024;
constexpr std::size_t kWordBytesMax = 128;

// Cuts between characters: half a UTF-8 sequence would be refused.
Json limited(const std::string& text, std::size_t bytes_max) {
    return utf8_prefix(text, bytes_max);
}

Json reference(const EventSubject& subject) {
    return json_object(
        {{"apiVersion", subject.api_version},
         {"kind", subject.kind},
         {"name", subject.key.name},
         {"uid", subject.uid},
         {"namespace", subject.key.ns},
         {"resourceVersion", subject.resource_version}});
}

}  // namespace

Json event_object(
    const ObjectKey& key,
    const EventNote& note,
    WallTime first_seen,
    const EventReporter& reporter) {
    return json_object(
        {{"apiVersion", kinds::kEvents.api_version()},
         {"kind", kinds::kEvents.kind},
         {"metadata", json_object({{"name", key.name}, {"namespace", key.ns}})},
         {"eventTime", format_micro_time(first_seen)},
         {"type", note.type == EventType::kNormal ? "Normal" : "Warning"},
         {"reason", limited(note.reason, kWordBytesMax)},
         {"action", limited(note.action, kWordBytesMax)},
         {"note", limited(note.note, kNoteBytesMax)},
         {"reportingController", limited(reporter.controller, kWordBytesMax)},
         {"reportingInstance", limited(reporter.instance, kWordBytesMax)},
         {"regarding", reference(note.regarding)},
         {"related", note.related ? reference(*note.related) : Json()}});
}

Json event_series_patch(std::uint64_t count, WallTime last_seen) {
    const Json series =
        json_object({{"count", count}, {"lastObservedTime", format_micro_time(last_seen)}});
    return json_object({{"series", series}});
}

}  // namespace stoker::control

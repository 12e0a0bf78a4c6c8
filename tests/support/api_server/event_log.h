#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/json.h"
#include "operator/api/meta.h"
#include "tests/support/api_server/selector.h"

namespace stoker::test {

using control::Json;
using control::ObjectKey;

// One change of one object. `before` is absent for a new object, `after` for a deleted one; then
// `before` carries the version of the deletion.
struct LoggedChange {
    std::uint64_t version = 0;
    ObjectKey key;
    std::optional<Json> before;
    std::optional<Json> after;
};

// The changes of one resource, newest `capacity` kept: older watchers and pages are told 410.
class EventLog {
public:
    void set_capacity(std::size_t capacity);
    void add(LoggedChange change);
    // Forgets everything up to now, as compaction does.
    void forget(std::uint64_t version);

    // Versions below this are no longer known.
    [[nodiscard]] std::uint64_t floor() const { return floor_; }

    // The lines that a watch from after `version` gets, each with its '\n'.
    [[nodiscard]] std::vector<std::string> lines_after(
        std::uint64_t version, const Selector& selector) const;

    // Takes `objects` back to how they were at `version`, which must not be below floor().
    void rewind(std::map<ObjectKey, Json>& objects, std::uint64_t version) const;

private:
    std::size_t capacity_ = 10'000;
    std::uint64_t floor_ = 0;
    std::deque<LoggedChange> changes_;
};

// "{"type":"ADDED","object":…}\n"
std::string event_line(const std::string& type, const Json& object);

}  // namespace stoker::test

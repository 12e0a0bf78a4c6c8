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

// One change of one object. `before` is absent for a new object. For a deleted object `after` is
// absent and `before` carries the version of the deletion.
struct LoggedChange {
    std::uint64_t version = 0;
    ObjectKey key;
    std::optional<Json> before;
    std::optional<Json> after;
};

// The newest `capacity` changes of one resource. Watches and list pages from before these get 410.
class EventLog {
public:
    void set_capacity(std::size_t capacity);
    void add(LoggedChange change);
    // Drops all changes up to now, as compaction does.
    void forget(std::uint64_t version);

    // Versions below this have been dropped.
    [[nodiscard]] std::uint64_t floor() const { return floor_; }

    // The lines of a watch that starts after `version`, each with its '\n'.
    [[nodiscard]] std::vector<std::string> lines_after(
        std::uint64_t version, const Selector& selector) const;

    // Restores `objects` to their state at `version`, which must not be below floor().
    void rewind(std::map<ObjectKey, Json>& objects, std::uint64_t version) const;

private:
    std::size_t capacity_ = 10'000;
    std::uint64_t floor_ = 0;
    std::deque<LoggedChange> changes_;
};

// "{"type":"ADDED","object":…}\n"
std::string event_line(const std::string& type, const Json& object);

}  // namespace stoker::test

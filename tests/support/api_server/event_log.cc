#include "tests/support/api_server/event_log.h"

#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

namespace stoker::test {

std::string event_line(const std::string& type, const Json& object) {
    return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object.text());
}

void EventLog::set_capacity(std::size_t capacity) {
    capacity_ = capacity;
}

void EventLog::add(LoggedChange change) {
    changes_.push_back(std::move(change));
    while (changes_.size() > capacity_) {
        floor_ = changes_.front().version;
        changes_.pop_front();
    }
}

void EventLog::forget(std::uint64_t version) {
    changes_.clear();
    floor_ = version;
}

// For a watcher, an object that starts or stops matching its selector appears or disappears.
std::vector<std::string> EventLog::lines_after(
    std::uint64_t version, const Selector& selector) const {
    std::vector<std::string> lines;
    for (const LoggedChange& change : changes_) {
        if (change.version <= version) {
            continue;
        }
        const bool before = change.before && matches(selector, change.before->value());
        const bool after = change.after && matches(selector, change.after->value());
        if (after) {
            lines.push_back(event_line(before ? "MODIFIED" : "ADDED", *change.after));
        } else if (before) {
            auto gone = change.before->value();
            gone["metadata"]["resourceVersion"] =
                web::json::value(fmt::format("{}", change.version));
            lines.push_back(event_line("DELETED", Json(std::move(gone))));
        }
    }
    return lines;
}

void EventLog::rewind(std::map<ObjectKey, Json>& objects, std::uint64_t version) const {
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
        if (change->version <= version) {
            return;
        }
        if (change->before) {
            objects[change->key] = *change->before;
        } else {
            objects.erase(change->key);
        }
    }
}

}  // namespace stoker::test

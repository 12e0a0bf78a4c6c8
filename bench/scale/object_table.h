#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/meta.h"

// Storage of the fake API server for `make scale`: objects as text, so that 50,000 pods take 50
// MiB and no list is parsed or built as a tree.
namespace stoker::bench {

using Text = std::shared_ptr<const std::string>;

// One object. Its text is {"apiVersion":…,"kind":…,"metadata":{META,"resourceVersion":…EXTRA}BODY
// TAIL,"status":STATUS}. META, EXTRA, BODY and TAIL hold fields with their commas. Objects share
// EXTRA and TAIL if they differ only in the other parts. Null: an empty part.
struct StoredObject {
    std::string meta;  // `"name":"x","uid":"y"`
    Text meta_extra;   // `,"managedFields":[…]`
    std::string body;  // `,"spec":{"nodeName":"n"`
    Text tail;         // `,"containers":[…]}`
    std::string status;
    std::uint64_t version = 0;
};

// The objects that a list or a watch asks for. `label`: "key" or "key=value"; empty: all.
struct Selection {
    std::string ns;
    std::string label;
};

struct WatchLines {
    std::vector<Text> lines;
    std::uint64_t version = 0;  // the watch continues after it
};

// All objects of one kind. Thread-safe.
class ObjectTable {
public:
    ObjectTable(std::string api_version, std::string kind)
        : head_(R"({"apiVersion":")" + api_version + R"(","kind":")" + kind + R"(","metadata":{)") {
    }

    [[nodiscard]] std::optional<StoredObject> find(const control::ObjectKey& key) const;
    [[nodiscard]] std::string text_of(const StoredObject& object) const;

    // Stores `object` with this version and tells the watches. Returns its text.
    std::string put(const control::ObjectKey& key, StoredObject object, std::uint64_t version);
    // As put(), for the status only; "" if there is no such object.
    std::string put_status(
        const control::ObjectKey& key, const std::string& status, std::uint64_t version);
    bool erase(const control::ObjectKey& key, std::uint64_t version);

    // Keys of the selected objects, ordered, from `from` on.
    [[nodiscard]] std::vector<control::ObjectKey> keys(
        const Selection& selection, const control::ObjectKey& from) const;

    // Changes after `version`; waits for one, at most a second.
    WatchLines wait_for_changes(const Selection& selection, std::uint64_t version);

    [[nodiscard]] std::size_t size() const;

private:
    struct Change {
        control::ObjectKey key;
        std::uint64_t version = 0;
        Text line;
    };

    void note(const control::ObjectKey& key, std::string_view type, const StoredObject& object);

    std::string head_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<control::ObjectKey, StoredObject> objects_;
    std::deque<Change> changes_;  // the newest kChangesMax changes
};

}  // namespace stoker::bench

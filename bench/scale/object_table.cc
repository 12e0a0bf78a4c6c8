#include "bench/scale/object_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace stoker::bench {

using control::ObjectKey;

namespace {

constexpr std::size_t kChangesMax = 400'000;

// `text` is an object's metadata or a whole watch line; both contain its labels once.
bool is_selected(const Selection& selection, const ObjectKey& key, std::string_view text) {
    if (!selection.ns.empty() && key.ns != selection.ns) {
        return false;
    }
    if (selection.label.empty()) {
        return true;
    }
    const std::size_t equals = selection.label.find('=');
    std::string wanted = "\"" + selection.label.substr(0, equals) + "\":";
    if (equals != std::string::npos) {
        wanted += "\"" + selection.label.substr(equals + 1) + "\"";
    }
    return text.find(wanted) != std::string_view::npos;
}

}  // namespace

std::optional<StoredObject> ObjectTable::find(const ObjectKey& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

std::string ObjectTable::text_of(const StoredObject& object) const {
    std::string text = head_;
    text += object.meta;
    text += ",\"resourceVersion\":\"" + std::to_string(object.version) + "\"";
    text += object.meta_extra ? *object.meta_extra : "";
    text += "}";
    text += object.body;
    text += object.tail ? *object.tail : "";
    if (!object.status.empty()) {
        text += ",\"status\":" + object.status;
    }
    text += "}";
    return text;
}

void ObjectTable::note(const ObjectKey& key, std::string_view type, const StoredObject& object) {
    std::string line = "{\"type\":\"" + std::string(type) + "\",\"object\":";
    line += text_of(object) + "}\n";
    changes_.push_back({key, object.version, std::make_shared<const std::string>(std::move(line))});
    if (changes_.size() > kChangesMax) {
        changes_.pop_front();
    }
    changed_.notify_all();
}

std::string ObjectTable::put(const ObjectKey& key, StoredObject object, std::uint64_t version) {
    const std::lock_guard lock(mutex_);
    object.version = version;
    const auto [at, is_new] = objects_.insert_or_assign(key, std::move(object));
    note(key, is_new ? "ADDED" : "MODIFIED", at->second);
    return text_of(at->second);
}

std::string ObjectTable::put_status(
    const ObjectKey& key, const std::string& status, std::uint64_t version) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) {
        return "";
    }
    found->second.status = status;
    found->second.version = version;
    note(key, "MODIFIED", found->second);
    return text_of(found->second);
}

bool ObjectTable::erase(const ObjectKey& key, std::uint64_t version) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) {
        return false;
    }
    found->second.version = version;
    note(key, "DELETED", found->second);
    objects_.erase(found);
    return true;
}

std::vector<ObjectKey> ObjectTable::keys(const Selection& selection, const ObjectKey& from) const {
    const std::lock_guard lock(mutex_);
    std::vector<ObjectKey> result;
    for (auto it = objects_.lower_bound(from); it != objects_.end(); ++it) {
        if (is_selected(selection, it->first, it->second.meta)) {
            result.push_back(it->first);
        }
    }
    return result;
}

WatchLines ObjectTable::wait_for_changes(const Selection& selection, std::uint64_t version) {
    std::unique_lock lock(mutex_);
    const auto has_news = [&] { return !changes_.empty() && changes_.back().version > version; };
    changed_.wait_for(lock, std::chrono::seconds{1}, has_news);
    WatchLines result;
    result.version = version;
    if (!has_news()) {
        return result;
    }
    const auto first = std::upper_bound(
        changes_.begin(), changes_.end(), version, [](std::uint64_t at, const Change& change) {
            return at < change.version;
        });
    for (auto it = first; it != changes_.end(); ++it) {
        if (is_selected(selection, it->key, *it->line)) {
            result.lines.push_back(it->line);
        }
    }
    result.version = changes_.back().version;
    return result;
}

std::size_t ObjectTable::size() const {
    const std::lock_guard lock(mutex_);
    return objects_.size();
}

}  // namespace stoker::bench

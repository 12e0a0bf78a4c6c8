#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/meta.h"
#include "operator/kube/object.h"

namespace stoker::control {

// One object of the server as we know it: what names this very state of it, and its parsed value.
template <class T>
struct Stored {
    ObjectKey key;
    std::string uid;
    std::string resource_version;
    T value;
};

// Snapshots are immutable and stay valid as long as somebody holds them.
template <class T>
using StoredPtr = std::shared_ptr<const Stored<T>>;

enum class ChangeKind : std::uint8_t { kAdded, kUpdated, kDeleted };

// What happened to one object. `before` is null for kAdded, `after` for kDeleted. An object that
// was deleted and made anew under its old key comes as kDeleted, then kAdded.
template <class T>
struct Change {
    ChangeKind kind = ChangeKind::kAdded;
    StoredPtr<T> before;
    StoredPtr<T> after;
    // kDeleted only: false when nobody told us of the deletion: a list no longer had it, or it came
    // back as another. `before` is then merely the last state that we saw; use it to find owners,
    // not to act on its spec.
    bool final_state_known = true;

    [[nodiscard]] const Stored<T>& object() const { return after ? *after : *before; }
};

template <class T>
using Changes = std::vector<Change<T>>;

// A copy of one kind's objects with secondary indexes. One writer (its informer), any number of
// readers; thread-safe. Memory: the objects. Writers get back what changed and tell others after
// the lock is gone, so that whoever is told finds the change in the store.
//
// What keeps it equal to the server may be one watch of all namespaces, or one a namespace. `scope`
// says which: "" or the namespace. Each has come to a version of its own.
template <class T>
class Store {
public:
    // The values under which an object is found, such as its owner's UID. Pure and quick: runs
    // under the lock.
    using IndexFunction = std::function<std::vector<std::string>(const Stored<T>&)>;

    // Before the first object is stored.
    void add_index(std::string name, IndexFunction values_of) {
        const std::lock_guard lock(mutex_);
        indexes_.emplace(std::move(name), Index{std::move(values_of), {}});
    }

    // null when there is none.
    [[nodiscard]] StoredPtr<T> get(const ObjectKey& key) const {
        const std::lock_guard lock(mutex_);
        const auto found = objects_.find(key);
        return found == objects_.end() ? nullptr : found->second;
    }

    // All of them, ordered by key.
    [[nodiscard]] std::vector<StoredPtr<T>> list() const {
        const std::lock_guard lock(mutex_);
        std::vector<StoredPtr<T>> all;
        all.reserve(objects_.size());
        for (const auto& [key, object] : objects_) {
            all.push_back(object);
        }
        return all;
    }

    // Those with that value in the index called `name`, ordered by key. No such index: none.
    [[nodiscard]] std::vector<StoredPtr<T>> by_index(
        const std::string& name, const std::string& value) const {
        const std::lock_guard lock(mutex_);
        std::vector<StoredPtr<T>> matching;
        const auto index = indexes_.find(name);
        if (index == indexes_.end()) {
            return matching;
        }
        const auto keys = index->second.keys.find(value);
        if (keys == index->second.keys.end()) {
            return matching;
        }
        for (const ObjectKey& key : keys->second) {
            matching.push_back(objects_.at(key));
        }
        return matching;
    }

    [[nodiscard]] std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return objects_.size();
    }

    // Everything that happened on the server up to this version is in the store. "" before the
    // first list.
    [[nodiscard]] std::string resource_version(const std::string& scope = "") const {
        const std::lock_guard lock(mutex_);
        const auto known = versions_.find(scope);
        return known == versions_.end() ? "" : known->second;
    }

    // Whether a write in namespace `ns` that got this version back can be seen here: read your own
    // writes before you act again.
    [[nodiscard]] bool has_seen(
        const std::string& written_version, const std::string& ns = "") const {
        const std::lock_guard lock(mutex_);
        const auto own = versions_.find(ns);
        const auto used = own != versions_.end() ? own : versions_.find("");
        const std::string version = used == versions_.end() ? "" : used->second;
        const auto order = compare_resource_versions(version, written_version);
        return order ? *order != std::strong_ordering::less : version == written_version;
    }

    // The whole truth of that scope as of `version`: what is not among `objects` is gone.
    Changes<T> replace(
        std::vector<StoredPtr<T>> objects, std::string version, const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        Changes<T> changes;
        std::map<ObjectKey, StoredPtr<T>> wanted;
        for (StoredPtr<T>& object : objects) {
            wanted[object->key] = std::move(object);
        }
        for (auto known = objects_.begin(); known != objects_.end();) {
            const StoredPtr<T> before = (known++)->second;
            const bool ours = scope.empty() || before->key.ns == scope;
            if (ours && wanted.count(before->key) == 0) {
                erase(before);
                changes.push_back({ChangeKind::kDeleted, before, nullptr, false});
            }
        }
        for (auto& [key, object] : wanted) {
            put(std::move(object), changes);
        }
        versions_[scope] = std::move(version);
        return changes;
    }

    Changes<T> upsert(StoredPtr<T> object, const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        Changes<T> changes;
        versions_[scope] = object->resource_version;
        put(std::move(object), changes);
        return changes;
    }

    // Deletes the object of that key, whatever its UID. `final_state` is what the server last knew
    // of it; null: unknown.
    Changes<T> remove(
        const ObjectKey& key,
        const std::string& version,
        StoredPtr<T> final_state,
        const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        Changes<T> changes;
        versions_[scope] = version;
        const auto found = objects_.find(key);
        if (found == objects_.end()) {
            return changes;
        }
        const StoredPtr<T> before = found->second;
        erase(before);
        const bool known = final_state != nullptr;
        changes.push_back(
            {ChangeKind::kDeleted, known ? std::move(final_state) : before, nullptr, known});
        return changes;
    }

    // The server got to `version` and nothing here changed.
    void advance(std::string version, const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        versions_[scope] = std::move(version);
    }

private:
    struct Index {
        IndexFunction values_of;
        std::map<std::string, std::set<ObjectKey>> keys;
    };

    void put(StoredPtr<T> object, Changes<T>& changes) {
        const auto found = objects_.find(object->key);
        const StoredPtr<T> before = found == objects_.end() ? nullptr : found->second;
        const bool same = before && before->uid == object->uid;
        if (same && before->resource_version == object->resource_version) {
            return;  // nothing new; the old snapshot stays, and nobody is woken
        }
        if (before) {
            erase(before);
        }
        for (auto& [name, index] : indexes_) {
            for (std::string& value : index.values_of(*object)) {
                index.keys[std::move(value)].insert(object->key);
            }
        }
        objects_[object->key] = object;
        if (same) {
            changes.push_back({ChangeKind::kUpdated, before, std::move(object)});
            return;
        }
        if (before) {
            changes.push_back({ChangeKind::kDeleted, before, nullptr, false});
        }
        changes.push_back({ChangeKind::kAdded, nullptr, std::move(object)});
    }

    void erase(const StoredPtr<T>& object) {
        for (auto& [name, index] : indexes_) {
            for (const std::string& value : index.values_of(*object)) {
                const auto keys = index.keys.find(value);
                if (keys != index.keys.end() && keys->second.erase(object->key) > 0 &&
                    keys->second.empty()) {
                    index.keys.erase(keys);
                }
            }
        }
        objects_.erase(object->key);
    }

    mutable std::mutex mutex_;
    std::map<ObjectKey, StoredPtr<T>> objects_;
    std::map<std::string, Index> indexes_;
    std::map<std::string, std::string> versions_;  // by scope
};

}  // namespace stoker::control

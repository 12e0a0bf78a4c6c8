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

// One object of the server: its version and its parsed value.
template <class T>
struct Stored {
    ObjectKey key;
    std::string uid;
    std::string resource_version;
    T value;
};

// Snapshots are immutable and stay valid while referenced.
template <class T>
using StoredPtr = std::shared_ptr<const Stored<T>>;

enum class ChangeKind : std::uint8_t { kAdded, kUpdated, kDeleted };

// One change of an object. `before` is null for kAdded, `after` for kDeleted. A recreated object
// under its old key comes as kDeleted, then kAdded. If the watch missed a deletion, `before` is the
// last observed state: use it to find owners, not to act on its spec.
template <class T>
struct Change {
    ChangeKind kind = ChangeKind::kAdded;
    StoredPtr<T> before;
    StoredPtr<T> after;

    [[nodiscard]] const Stored<T>& object() const { return after ? *after : *before; }
};

template <class T>
using Changes = std::vector<Change<T>>;

// A copy of one kind's objects with secondary indexes. One writer (its informer), any number of
// readers; thread-safe. Writers get the changes back and call handlers after the lock is released,
// so that a handler finds the change in the store.
//
// One watch of all namespaces, or one per namespace, updates it. `scope` is "" or the namespace.
// Each scope has its own version.
template <class T>
class Store {
public:
    // The index values of an object, such as its owner's UID. Pure and quick: runs under the lock.
    using IndexFunction = std::function<std::vector<std::string>(const Stored<T>&)>;

    // Call it before the first object is stored.
    void add_index(std::string name, IndexFunction values_of) {
        const std::lock_guard lock(mutex_);
        indexes_.emplace(std::move(name), Index{std::move(values_of), {}});
    }

    // Null if there is no such object.
    [[nodiscard]] StoredPtr<T> get(const ObjectKey& key) const {
        const std::lock_guard lock(mutex_);
        return find(key);
    }

    // All objects, ordered by key.
    [[nodiscard]] std::vector<StoredPtr<T>> list() const {
        const std::lock_guard lock(mutex_);
        return {objects_.begin(), objects_.end()};
    }

    // Objects with that value in the index called `name`, ordered by key. No such index: none.
    [[nodiscard]] std::vector<StoredPtr<T>> by_index(
        const std::string& name, const std::string& value) const {
        const std::lock_guard lock(mutex_);
        const auto index = indexes_.find(name);
        if (index == indexes_.end()) {
            return {};
        }
        const auto matching = index->second.objects.find(value);
        if (matching == index->second.objects.end()) {
            return {};
        }
        return {matching->second.begin(), matching->second.end()};
    }

    [[nodiscard]] std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return objects_.size();
    }

    // The store has all server changes up to this version. "" before the first list.
    [[nodiscard]] std::string resource_version(const std::string& scope = "") const {
        const std::lock_guard lock(mutex_);
        const auto known = versions_.find(scope);
        return known == versions_.end() ? "" : known->second;
    }

    // True if the store shows a write in namespace `ns` that returned this version: check it before
    // acting again.
    [[nodiscard]] bool has_seen(
        const std::string& written_version, const std::string& ns = "") const {
        const std::lock_guard lock(mutex_);
        const auto own = versions_.find(ns);
        const auto used = own != versions_.end() ? own : versions_.find("");
        const std::string version = used == versions_.end() ? "" : used->second;
        const auto order = compare_resource_versions(version, written_version);
        return order ? *order != std::strong_ordering::less : version == written_version;
    }

    // Replaces the scope by `objects` as of `version`; missing objects are deleted.
    Changes<T> replace(
        std::vector<StoredPtr<T>> objects, std::string version, const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        Changes<T> changes;
        Objects wanted;
        for (StoredPtr<T>& object : objects) {
            wanted.erase(object);  // the last one of a key counts
            wanted.insert(std::move(object));
        }
        for (auto known = objects_.begin(); known != objects_.end();) {
            const StoredPtr<T> before = *known++;
            const bool ours = scope.empty() || before->key.ns == scope;
            if (ours && !wanted.contains(before)) {
                erase(before);
                changes.push_back({ChangeKind::kDeleted, before, nullptr});
            }
        }
        for (const StoredPtr<T>& object : wanted) {
            put(object, changes);
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

    // Deletes the object of that key, whatever its UID. `final_state` is the server's last state of
    // it; null: unknown.
    Changes<T> remove(
        const ObjectKey& key,
        const std::string& version,
        StoredPtr<T> final_state,
        const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        Changes<T> changes;
        versions_[scope] = version;
        const StoredPtr<T> before = find(key);
        if (!before) {
            return changes;
        }
        erase(before);
        changes.push_back(
            {ChangeKind::kDeleted, final_state ? std::move(final_state) : before, nullptr});
        return changes;
    }

    // Moves the version to `version` without a change.
    void advance(std::string version, const std::string& scope = "") {
        const std::lock_guard lock(mutex_);
        versions_[scope] = std::move(version);
    }

private:
    struct ByKey {
        using is_transparent = void;

        bool operator()(const StoredPtr<T>& a, const StoredPtr<T>& b) const {
            return a->key < b->key;
        }

        bool operator()(const StoredPtr<T>& a, const ObjectKey& b) const { return a->key < b; }

        bool operator()(const ObjectKey& a, const StoredPtr<T>& b) const { return a < b->key; }
    };

    using Objects = std::set<StoredPtr<T>, ByKey>;  // so that each key is in memory once

    struct Index {
        IndexFunction values_of;
        std::map<std::string, Objects> objects;  // by index value
    };

    // Null if there is no such object.
    [[nodiscard]] StoredPtr<T> find(const ObjectKey& key) const {
        const auto found = objects_.find(key);
        return found == objects_.end() ? nullptr : *found;
    }

    void put(StoredPtr<T> object, Changes<T>& changes) {
        const StoredPtr<T> before = find(object->key);
        const bool same = before && before->uid == object->uid;
        if (same && before->resource_version == object->resource_version) {
            return;  // unchanged; keep the old snapshot and call no handler
        }
        if (before) {
            erase(before);
        }
        for (auto& [name, index] : indexes_) {
            for (std::string& value : index.values_of(*object)) {
                index.objects[std::move(value)].insert(object);
            }
        }
        objects_.insert(object);
        if (same) {
            changes.push_back({ChangeKind::kUpdated, before, std::move(object)});
            return;
        }
        if (before) {
            changes.push_back({ChangeKind::kDeleted, before, nullptr});
        }
        changes.push_back({ChangeKind::kAdded, nullptr, std::move(object)});
    }

    void erase(const StoredPtr<T>& object) {
        for (auto& [name, index] : indexes_) {
            for (const std::string& value : index.values_of(*object)) {
                const auto matching = index.objects.find(value);
                if (matching != index.objects.end() && matching->second.erase(object) > 0 &&
                    matching->second.empty()) {
                    index.objects.erase(matching);
                }
            }
        }
        objects_.erase(object);
    }

    mutable std::mutex mutex_;
    Objects objects_;
    std::map<std::string, Index> indexes_;
    std::map<std::string, std::string> versions_;  // by scope
};

}  // namespace stoker::control

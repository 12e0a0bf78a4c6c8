#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/api/meta.h"
#include "operator/runtime/store.h"

namespace stoker::control {

// Versions that the API server returned for our last writes, by the key that each was made for: a
// reconciler must not act again before its cache shows its own write. Thread-safe.
class OwnWrites {
public:
    // After this time a cache that does not show our write is believed all the same: every write is
    // conditional or idempotent.
    static constexpr Duration kBlindMax = std::chrono::seconds{30};

    explicit OwnWrites(const Clock& clock)
        : clock_(clock) {}

    void note(const ObjectKey& key, std::string version) {
        (*writes_.lock())[key] = {std::move(version), clock_.now()};
    }

    void forget(const ObjectKey& key) { writes_.lock()->erase(key); }

    // Whether `store`, of the kind that was written, shows the last write for `key`; true when
    // there was none.
    template <class T>
    bool are_seen(const Store<T>& store, const ObjectKey& key) {
        auto writes = writes_.lock();
        const auto last = writes->find(key);
        return last == writes->end() || clock_.now() - last->second.at > kBlindMax ||
               store.has_seen(last->second.version, key.ns);
    }

    // How long ago the last write for `key` was; the longest time when there was none.
    Duration since_last(const ObjectKey& key) {
        auto writes = writes_.lock();
        const auto last = writes->find(key);
        return last == writes->end() ? Duration::max() : clock_.now() - last->second.at;
    }

private:
    struct Write {
        std::string version;
        TimePoint at{};
    };

    const Clock& clock_;
    Guarded<std::map<ObjectKey, Write>> writes_;
};

}  // namespace stoker::control

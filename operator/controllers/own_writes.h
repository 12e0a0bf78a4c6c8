#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/api/meta.h"
#include "operator/runtime/store.h"

namespace stoker::control {

// Resource versions that the API server returned for our last writes, by key: a reconciler must not
// act again before its cache shows its own write. Thread-safe.
class OwnWrites {
public:
    // A cache that still lacks our write after this time is trusted anyway: every write is
    // conditional or idempotent.
    static constexpr Duration kBlindMax = std::chrono::seconds{30};

    explicit OwnWrites(const Clock& clock)
        : clock_(clock) {}

    void note(const ObjectKey& key, std::string version) {
        (*writes_.lock())[key] = {std::move(version), clock_.now()};
    }

    void forget(const ObjectKey& key) { writes_.lock()->erase(key); }

    // True if `store`, of the written kind, shows the last write for `key`, or if there was none.
    template <class T>
    bool are_seen(const Store<T>& store, const ObjectKey& key) {
        auto writes = writes_.lock();
        const auto last = writes->find(key);
        return last == writes->end() || clock_.now() - last->second.at > kBlindMax ||
               store.has_seen(last->second.version, key.ns);
    }

    // Time since the last write for `key`; Duration's maximum if there was none.
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

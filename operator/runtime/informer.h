#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "operator/kube/transport.h"
#include "operator/kube/watch.h"
#include "operator/runtime/store.h"

namespace stoker::control {

// Counts of an informer; totals since its start.
struct InformerCounts {
    std::uint64_t lists = 0;       // number of complete lists applied
    std::uint64_t events = 0;      // changes and bookmarks of watches
    std::uint64_t troubles = 0;    // refused or cut requests, protocol errors
    std::uint64_t unreadable = 0;  // objects that the parser refused
    std::size_t objects = 0;       // in the store now
    bool synced = false;           // the first list is in the store
    TimePoint last_heard{};        // last message of the server; the epoch before the first
};

// Keeps a Store<T> equal to the server's objects of one kind and calls handlers after each change.
//
// If `parse` refuses an object, the informer reports it and keeps its last readable state in the
// store, unless the object was replaced (its UID changed). One bad object never hides the others.
//
// Watches all namespaces, or several with one watch each. run() blocks its thread until a stop is
// requested; one run at a time. Handlers must be quick (push a key into a queue) and are called one
// at a time, on the thread of run() or, with several watches, one that run() starts. Everything else
// is thread-safe.
template <class T>
class Informer {
public:
    using Parse = std::function<Result<T>(const Json& raw)>;
    using Handler = std::function<void(const Change<T>& change)>;
    using OnUnreadable = std::function<void(const Object& object, const Error& error)>;

    // One watch: of all namespaces, or of the one in its scope.
    struct Source {
        ApiTransport* transport = nullptr;  // its own, so that no watch waits for another
        WatchOptions options;
    };

    // `transport` and `clock` must outlive it. Give each informer a transport of its own.
    Informer(
        ApiTransport& transport,
        WatchOptions options,
        Parse parse,
        const Clock& clock,
        std::uint64_t seed)
        : Informer({Source{&transport, std::move(options)}}, std::move(parse), clock, seed) {}

    // Needs at least one source; several differ only in the namespace of their scope.
    Informer(std::vector<Source> sources, Parse parse, const Clock& clock, std::uint64_t seed)
        : plural_(sources.at(0).options.kind.plural),
          may_be_missing_(sources.at(0).options.may_be_missing),
          parse_(std::move(parse)),
          clock_(&clock),
          unsynced_(sources.size()) {
        for (Source& source : sources) {
            const std::string scope = sources.size() > 1 ? source.options.scope.ns : "";
            source.options.transform = [this](Object& object) {
                object.value = this->parse(object);
                object.raw = Json();
            };
            loops_.push_back(std::make_unique<WatchLoop>(
                *source.transport,
                std::move(source.options),
                [this, scope, listed = false](WatchEvent&& event) mutable {
                    const std::lock_guard lock(apply_mutex_);
                    apply(std::move(event), scope, listed);
                },
                clock,
                seed + loops_.size()));
        }
    }

    Informer(const Informer&) = delete;
    Informer& operator=(const Informer&) = delete;

    // Call it before run().
    void add_handler(Handler handler) { handlers_.push_back(std::move(handler)); }

    // Call it before run(). Runs like a handler, each time an unreadable object arrives.
    void set_on_unreadable(OnUnreadable report) { on_unreadable_ = std::move(report); }

    // Add indexes before run().
    Store<T>& store() { return store_; }

    [[nodiscard]] const Store<T>& store() const { return store_; }

    void run(const std::stop_token& stop) {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < loops_.size(); ++i) {
            others.push_back(start_thread(
                "watch-" + plural_,
                [this, i, &stop](const std::stop_token&) { loops_[i]->run(stop); }));
        }
        loops_[0]->run(stop);
    }

    // One loop for each source, for a caller that steps the loops itself instead of calling run().
    [[nodiscard]] std::vector<WatchLoop*> loops() const {
        std::vector<WatchLoop*> all;
        for (const auto& loop : loops_) {
            all.push_back(loop.get());
        }
        return all;
    }

    // True once the first list of each source is in the store and every handler has seen it.
    // Workers must wait for it.
    [[nodiscard]] bool has_synced() const { return unsynced_ == 0; }

    [[nodiscard]] InformerCounts counts() const {
        return {
            lists_,
            events_,
            troubles_,
            unreadable_,
            store_.size(),
            has_synced(),
            TimePoint{Duration{last_heard_}}};
    }

private:
    // `listed`: the first list of this source is applied.
    void apply(WatchEvent&& event, const std::string& scope, bool& listed) {
        if (auto* trouble = std::get_if<Troubled>(&event)) {
            ++troubles_;
            const bool is_missing = may_be_missing_ && trouble->error.code == ErrorCode::kNotFound;
            log::write(
                is_missing ? log::Level::kDebug : log::Level::kWarning,
                "watch troubled",
                {{"kind", plural_},
                 {"error", trouble->error.message},
                 {"lists_again", trouble->lists_again}});
            return;
        }
        last_heard_ = clock_->now().time_since_epoch().count();
        if (auto* replaced = std::get_if<Replaced>(&event)) {
            ++lists_;
            tell_all(store_.replace(
                all_parsed(replaced->objects), std::move(replaced->resource_version), scope));
            unsynced_ -= std::exchange(listed, true) ? 0U : 1U;
            return;
        }
        ++events_;
        if (auto* upserted = std::get_if<Upserted>(&event)) {
            upsert(upserted->object, scope);
        } else if (auto* removed = std::get_if<Removed>(&event)) {
            const Object& object = removed->object;
            tell_all(store_.remove(object.key, object.resource_version, parsed(object), scope));
        } else {
            store_.advance(std::move(std::get<Bookmarked>(event).resource_version), scope);
        }
    }

    void upsert(const Object& object, const std::string& scope) {
        if (StoredPtr<T> readable = parsed(object)) {
            tell_all(store_.upsert(std::move(readable), scope));
            return;
        }
        const StoredPtr<T> before = store_.get(object.key);
        if (before && before->uid != object.uid) {
            tell_all(store_.remove(object.key, object.resource_version, nullptr, scope));
        } else {
            store_.advance(object.resource_version, scope);
        }
    }

    std::vector<StoredPtr<T>> all_parsed(const std::vector<Object>& objects) {
        std::vector<StoredPtr<T>> all;
        all.reserve(objects.size());
        for (const Object& object : objects) {
            StoredPtr<T> one = parsed(object);
            if (!one) {
                one = store_.get(object.key);
            }
            if (one && one->uid == object.uid) {
                all.push_back(std::move(one));
            }
        }
        return all;
    }

    // Null if the object cannot be parsed.
    static StoredPtr<T> parsed(const Object& object) {
        return std::static_pointer_cast<const Stored<T>>(object.value);
    }

    StoredPtr<T> parse(const Object& object) {
        Result<T> value = parse_(object.raw);
        if (!value) {
            ++unreadable_;
            log::warning(
                "object cannot be read",
                {{"kind", plural_},
                 {"object", to_string(object.key)},
                 {"error", value.error().message}});
            if (on_unreadable_) {
                const std::lock_guard lock(apply_mutex_);
                on_unreadable_(object, value.error());
            }
            return nullptr;
        }
        return std::make_shared<const Stored<T>>(
            Stored<T>{object.key, object.uid, object.resource_version, *std::move(value)});
    }

    void tell_all(const Changes<T>& changes) {
        for (const Change<T>& change : changes) {
            tell(change);
        }
    }

    void tell(const Change<T>& change) {
        for (const Handler& handler : handlers_) {
            handler(change);
        }
    }

    std::string plural_;
    bool may_be_missing_;
    Parse parse_;
    const Clock* clock_;
    Store<T> store_;
    std::vector<Handler> handlers_;
    OnUnreadable on_unreadable_;
    std::mutex apply_mutex_;  // one event at a time, from any source
    std::atomic<std::size_t> unsynced_;
    std::atomic<std::uint64_t> lists_{0};
    std::atomic<std::uint64_t> events_{0};
    std::atomic<std::uint64_t> troubles_{0};
    std::atomic<std::uint64_t> unreadable_{0};
    std::atomic<Duration::rep> last_heard_{0};
    std::vector<std::unique_ptr<WatchLoop>> loops_;  // last: they call back into the members above
};

}  // namespace stoker::control

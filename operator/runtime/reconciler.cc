#include "operator/runtime/reconciler.h"

#include <exception>
#include <utility>

#include "common/log/log.h"

namespace stoker::control {

bool is_terminal(ErrorCode code) {
    return code == ErrorCode::kInvalidArgument || code == ErrorCode::kGone;
}

Reconciler::Reconciler(
    std::string name, Function reconcile, const Clock& clock, WorkQueueOptions options)
    : name_(std::move(name)),
      reconcile_(std::move(reconcile)),
      queue_(clock, options) {}

void Reconciler::work(const std::stop_token& stop) {
    while (const auto key = queue_.pop(stop)) {
        ++active_;
        settle(*key, call(*key, stop));
        --active_;
        queue_.done(*key);
    }
}

Result<Reconciled> Reconciler::call(const ObjectKey& key, const std::stop_token& stop) {
    // The only place that catches library exceptions, so that they do not end the process.
    try {
        return reconcile_(key, stop);
    } catch (const std::exception& error) {
        ++exceptions_;
        return fail(ErrorCode::kInternal, std::string("exception: ") + error.what());
    } catch (...) {
        ++exceptions_;
        return fail(ErrorCode::kInternal, "an exception of an unknown type");
    }
}

void Reconciler::settle(const ObjectKey& key, const Result<Reconciled>& outcome) {
    if (outcome) {
        ++successes_;
        queue_.forget(key);
        if (outcome->requeue_after) {
            queue_.add_after(key, *outcome->requeue_after);
        }
        return;
    }
    const Error& error = outcome.error();
    const bool terminal = is_terminal(error.code);
    terminal ? ++terminal_ : ++errors_;
    if (error.code != ErrorCode::kCancelled) {
        log::warning(
            "reconcile failed",
            {{"controller", name_},
             {"object", to_string(key)},
             {"code", to_string(error.code)},
             {"error", error.message},
             {"retries", !terminal}});
    }
    if (terminal) {
        queue_.forget(key);
    } else {
        queue_.add_rate_limited(key);
    }
}

bool Reconciler::drain(TimePoint until) {
    queue_.shut_down();
    return queue_.wait_drained(until);
}

ReconcilerCounts Reconciler::counts() const {
    return {successes_, errors_, terminal_, exceptions_, active_};
}

}  // namespace stoker::control

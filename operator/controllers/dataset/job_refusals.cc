#include "operator/controllers/dataset/job_refusals.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/core/lifecycle/refusal_words.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

std::optional<Duration> JobRefusals::wait(const ObjectKey& dataset, const FillerPlace& place) {
    auto refusals = refusals_.lock();
    const auto known = refusals->find(dataset);
    if (known == refusals->end()) {
        return std::nullopt;
    }
    const auto found = known->second.find(place);
    if (found == known->second.end()) {
        return std::nullopt;
    }
    const Duration left = found->second.at + found->second.wait - clock_.now();
    return left > Duration{} ? std::optional(left) : std::nullopt;
}

Result<std::optional<Duration>> JobRefusals::note(
    const ObjectKey& dataset, const FillerPlace& place, const Error& error) {
    const bool taken = error.code == ErrorCode::kAlreadyExists;
    if (!taken && error.code != ErrorCode::kForbidden &&
        error.code != ErrorCode::kInvalidArgument) {
        return fail(error);
    }
    auto refusals = refusals_.lock();
    const auto [found, is_new] = (*refusals)[dataset].try_emplace(place);
    Refusal& refusal = found->second;
    const bool again = !is_new;
    std::string words = refusal_words(error.message);
    if (taken) {
        // At the first conflict the Job is probably our own, and the cache does not show it yet.
        words = again ? "a Job of another owner has its name" : "";
    }
    const bool news = refusal.words != words;
    const Duration wait = again ? std::min(refusal.wait * 2, wait_most_) : kTryAgain;
    refusal = {std::move(words), clock_.now(), wait};
    // The next round reports the refusal.
    return std::optional<Duration>{news ? Duration{std::chrono::milliseconds{1}} : wait};
}

FillerDiagnoses JobRefusals::words(const ObjectKey& dataset) {
    auto refusals = refusals_.lock();
    FillerDiagnoses words;
    if (const auto found = refusals->find(dataset); found != refusals->end()) {
        for (const auto& [place, refusal] : found->second) {
            words[place] = refusal.words;
        }
    }
    return words;
}

void JobRefusals::forget(const ObjectKey& dataset, const FillerPlace& place) {
    auto refusals = refusals_.lock();
    const auto found = refusals->find(dataset);
    if (found != refusals->end() && found->second.erase(place) > 0 && found->second.empty()) {
        refusals->erase(found);
    }
}

void JobRefusals::forget(const ObjectKey& dataset) {
    refusals_.lock()->erase(dataset);
}

Status remove_job(ApiClient& client, const ObjectKey& job, const std::string& uid) {
    DeleteParams params;
    params.uid = uid;
    params.propagation = Propagation::kForeground;
    const Status done = client.remove(kinds::kJobs, job, params);
    return !done && done.error().code == ErrorCode::kConflict ? Status{} : done;
}

}  // namespace stoker::control

// The part of ServedDataset that fetches samples too large for memory.
#include <utility>

#include "sidecar/service/served_dataset.h"

namespace stoker::sidecar {

std::unique_ptr<PartsFetcher> ServedDataset::make_parts_fetcher(const EngineLimits& limits) {
    return std::make_unique<PartsFetcher>(
        parts_,
        origin_,
        *store_,
        manifest(),
        PartsFetcher::limits_for(limits),
        PartsFetcher::Events{
            [this](const FetchTimes& times) { bypass_.on_stored(times); },
            [this](const PartsFetcher::Ended& ended) { on_parts_end(ended); }});
}

void ServedDataset::on_parts_end(const PartsFetcher::Ended& ended) {
    const StartFetch& fetch = ended.fetch;
    if (!ended.origin) {
        on_fetch_failed(fetch, ended.started_at, ended.origin.error(), ended.requests);
        end_work();
        return;
    }
    origin_requests_ += ended.requests;
    if (ended.is_damaged && !retiring_) {
        parts_fetcher_->start(fetch, ended.started_at, ended.attempts);
        return;
    }
    origin_request_time_ += parts_.loop.now() - ended.started_at;
    if (!ended.is_damaged) {
        origin_bytes_ += engine_->fetch().sizes().of(fetch.sample);
        forbidden_in_row_ = 0;
        on_stored(fetch.sample, ended.store);
    }
    end_work();
}

}  // namespace stoker::sidecar

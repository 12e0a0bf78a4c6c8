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
            [this](SampleIndex sample) { return engine_->fetch().is_urgent(sample); },
            [this](SampleIndex sample, Bytes bytes) { return take_part(sample, bytes); },
            [this](const FetchTimes& times) { bypass_.on_stored(times); },
            [this](const PartsFetcher::Ended& ended) { on_parts_end(ended); }});
}

// Disk space of residents that are partly fetched. The operator counts these bytes as resident: it
// must not grant them to others before they are free.
Bytes ServedDataset::unfinished_residents() const {
    const FetchEngine& fetch = std::as_const(*engine_).fetch();
    Bytes bytes;
    for (const SampleIndex sample : fetch.parted()) {
        if (fetch.sample(sample).segment_class == domain::SegmentClass::kResident) {
            bytes += fetch.record_bytes(sample);
        }
    }
    return bytes;
}

// Whether a part may be requested now; the engine signals when a refused part may be requested.
bool ServedDataset::take_part(SampleIndex sample, Bytes bytes) {
    const bool may = engine_->fetch().take_part(sample, bytes, parts_.loop.now());
    if (!may) {
        schedule_tick();
    }
    return may;
}

void ServedDataset::on_parts_end(const PartsFetcher::Ended& ended) {
    const StartFetch& fetch = ended.fetch;
    if (ended.is_stopped) {
        origin_requests_ += ended.requests;
        apply(engine_->fetch().on_stopped(fetch.sample, parts_.loop.now()));
        end_work();
        return;
    }
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

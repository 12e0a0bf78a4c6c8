// The part of ServedDataset that applies the grant and the order to fetch without a reader.
#include <algorithm>
#include <utility>

#include "sidecar/service/served_dataset.h"

namespace stoker::sidecar {

void ServedDataset::set_grant(EngineGrant grant) {
    grant_ = grant;
    apply(engine_->fetch().on_grant(effective_grant(), parts_.loop.now()));
}

// The grant within the disk's limit: residents leave room for the window, which every miss needs.
// Nothing is fetched without a reader until it is known which samples this node owns.
EngineGrant ServedDataset::effective_grant() const {
    EngineGrant grant = grant_;
    grant.resident_bytes = std::min(grant.resident_bytes, resident_cap_);
    if (placing_) {
        grant.fill_bytes_per_second.reset();
    }
    return grant;
}

// Reports the progress of the fetches without a reader. Reports nothing while the owners are being
// computed, because it is not known which samples we own.
void ServedDataset::tell_fill(LeaderStatus& status) const {
    const auto state = std::as_const(*engine_).fetch().fill_state(parts_.loop.now());
    if (state) {
        status.fill = control::FillProgress{
            state->own.samples,
            state->own.bytes,
            state->stored.samples,
            state->stored.bytes,
            state->refused,
            state->over,
            state->shut};
    }
}

void ServedDataset::set_placing(bool placing) {
    placing_ = placing;
    apply(engine_->fetch().on_grant(effective_grant(), parts_.loop.now()));
}

}  // namespace stoker::sidecar

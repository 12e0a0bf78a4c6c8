// The part of ServedDataset that handles fetches that the origin has failed.
#include <string>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/service/current_revision.h"
#include "sidecar/service/served_dataset.h"

namespace stoker::sidecar {

using domain::SampleId;

namespace {

constexpr std::uint32_t kForbiddenMax = 8;  // in a row; a single object may have another owner

}  // namespace

void ServedDataset::on_fetch_failed(
    const StartFetch& fetch, TimePoint started_at, const Error& error, std::uint32_t requests) {
    origin_requests_ += requests;
    origin_request_time_ += requests > 0 ? parts_.loop.now() - started_at : Duration::zero();
    const Party party = engine_->fetch().sample(fetch.sample).party;
    const bool is_ours = party == kOwnParty || party == kPeerParty;
    apply(engine_->fetch().on_fetch_failed(fetch.sample, error, parts_.loop.now()));
    if (is_ours && requests > 0) {
        note_forbidden(error);  // a request refused for a guest is no reason to release the lead
    }
    note_changed(fetch.sample, error);
}

void ServedDataset::note_forbidden(const Error& error) {
    forbidden_in_row_ = error.code == ErrorCode::kForbidden ? forbidden_in_row_ + 1 : 0;
    if (forbidden_in_row_ >= kForbiddenMax && !retiring_) {
        on_forbidden_(error);
    }
}

// The attempt continues: readers get the error, and the operator reports the object's key. The
// listing is no longer young for attempts to come.
void ServedDataset::note_changed(SampleIndex sample, const Error& error) {
    if (error.code != ErrorCode::kConflict || !changed_key_.empty()) {
        return;
    }
    changed_key_ = manifest().sample(SampleId{sample}).key;
    log::warning(
        "an object at the origin has changed since it was listed",
        {{"dataset", config_.name}, {"key", changed_key_}, {"error", error.message}});
    on_pool(
        [this] {
            const std::string folder = domain::data_folder(config_.directory);
            forget_age(parts_.device, folder, manifest().revision());
        },
        [] {});
}

}  // namespace stoker::sidecar

#include "sidecar/service/preparer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/domain/node_directory.h"
#include "common/log/log.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kListingPatience = std::chrono::seconds{30};
constexpr Duration kRetryMin = std::chrono::seconds{1};
constexpr Duration kRetryMax = std::chrono::seconds{30};

std::int64_t seconds_of(Duration duration) {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

PreparationOptions preparation_options(
    const SidecarParts& parts, const DatasetConfig& config, const Origin& origin) {
    PreparationOptions options;
    options.directory = domain::data_folder(config.directory);
    options.control_directory = domain::control_folder(config.directory);
    options.source = origin.describe();
    options.job_uid = parts.job_uid;
    options.attempt_uid = parts.attempt_uid;
    options.marks = config.pinned;
    options.listing_age_max = config.listing_age_max;
    options.window_bytes = config.window_bytes;
    options.store.reserved_free = config.reserved_free;
    options.store.boot_id = parts.boot_id;
    return options;
}

}  // namespace

Preparer::Preparer(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    const PeerSelf& self,
    bool keep_revision,
    Callbacks callbacks)
    : parts_(parts),
      config_(config),
      origin_(origin),
      callbacks_(std::move(callbacks)),
      options_(preparation_options(parts, config, origin)),
      objects_listed_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      retry_delay_(kRetryMin),
      stall_(kListingPatience),
      timer_(parts.loop),
      tasks_(parts.loop),
      proof_(parts_, config, origin, [this] { on_proof(); }) {
    options_.keep_revision = keep_revision;
    // ETags of a directory differ between nodes; such a dataset is never pinned.
    if (parts.peers != nullptr && parts.operator_grants && config.pinned) {
        taker_ = std::make_unique<ManifestTaker>(
            parts_,
            self,
            options_.source,
            options_.directory,
            config.listing_age_max,
            ManifestTaker::Callbacks{
                [this](const TakenManifest& taken) { take(taken); },
                [this](Duration waited) {
                    callbacks_.no_group(waited);
                    run();
                }});
    }
    start();
}

Preparer::~Preparer() {
    stop();
}

void Preparer::start() {
    failed_ = false;
    options_.taken.reset();
    options_.use_young = false;
    options_.wall_now = parts_.loop.clock().wall_now();
    const auto current = load_current(parts_.device, options_.directory);
    if (is_reusable(current, options_)) {
        run();
    } else if (is_young(current, options_)) {
        tasks_.post([this, young = *current] { use_young(young); });
    } else if (taker_ != nullptr) {
        taker_->begin(wanted_);
    } else {
        run();
    }
}

void Preparer::take(const TakenManifest& taken) {
    options_.taken = {
        taken.revision,
        options_.source,
        options_.job_uid,
        options_.attempt_uid,
        true,
        taken.listed_at};
    prove(taken.revision, taken.job_uid);
}

void Preparer::use_young(const CurrentRevision& young) {
    options_.use_young = true;
    if (young.job_uid.empty() && parts_.job_uid.empty()) {
        run();  // without jobs there is only one user
        return;
    }
    prove(young.revision, young.job_uid);
}

// The listing of a peer or of another attempt does not prove that we may read the dataset: our own key
// must read it, unless a key of our job has done so.
void Preparer::prove(domain::RevisionId revision, const std::string& job_uid) {
    if (!job_uid.empty() && job_uid == parts_.job_uid) {
        run();
        return;
    }
    unproven_ = revision;
    on_proof();
}

void Preparer::on_proof() {
    if (!unproven_ || stopped_) {
        return;
    }
    const auto state = proof_.ask(*unproven_);
    if (state == AccessProof::State::kAsking) {
        return;
    }
    unproven_.reset();
    if (state == AccessProof::State::kRefused) {
        on_prepared(fail(proof_.error()));
        return;
    }
    if (state == AccessProof::State::kFailed) {
        options_.taken.reset();
        options_.use_young = false;
    }
    run();
}

void Preparer::run() {
    if (stopped_) {
        return;
    }
    is_running_ = true;
    options_.wall_now = parts_.loop.clock().wall_now();
    *objects_listed_ = 0;
    stall_.begin(parts_.loop.now());
    worker_ = parts_.make_workers("prepare", 1);
    worker_->post([this, options = options_, stop = stop_.get_token()] {
        auto prepared = std::make_shared<Result<Preparation>>(prepare_dataset(
            parts_.device,
            origin_,
            options,
            [count = objects_listed_](std::uint64_t objects) { *count = objects; },
            stop));
        tasks_.post([this, prepared] { on_prepared(std::move(*prepared)); });
    });
}

void Preparer::list_again(std::optional<domain::RevisionId> pinned) {
    options_.list_again = true;
    wanted_ = pinned.value_or(domain::RevisionId{});
    start();
}

void Preparer::set_group(const std::vector<control::PeerMember>& members) {
    if (taker_ != nullptr) {
        taker_->set_group(members);
    }
}

PeerManifestWait Preparer::state() const {
    using State = PeerManifestWait::State;
    if (failed_) {
        return {State::kNever, 0};
    }
    if (is_running_) {
        return {State::kListing, objects_listed() + 1};
    }
    return unproven_ || taker_ == nullptr ? PeerManifestWait{State::kTaking, 1} : taker_->state();
}

void Preparer::stop() {
    stopped_ = true;
    timer_.cancel();
    if (taker_ != nullptr) {
        taker_->stop();
    }
    stop_.request_stop();
    worker_.reset();
}

void Preparer::on_prepared(Result<Preparation> prepared) {
    is_running_ = false;
    wanted_ = {};
    worker_.reset();
    if (stopped_) {
        return;
    }
    if (prepared) {
        callbacks_.ready(*std::move(prepared));
        return;
    }
    failed_ = true;
    error_ = prepared.error();
    log::warning(
        "dataset cannot be served yet",
        {{"dataset", config_.name},
         {"code", to_string(error_.code)},
         {"error", error_.message},
         {"retry_seconds", seconds_of(retry_delay_)}});
    timer_.run_in(retry_delay_, [this] { start(); });
    retry_delay_ = std::min(retry_delay_ * 2, kRetryMax);
    callbacks_.failed();
}

void Preparer::look() {
    const Duration silence =
        is_running_ ? stall_.look(parts_.loop.now(), *objects_listed_) : Duration{};
    if (silence == Duration{}) {
        return;
    }
    const bool is_news = error_.code != ErrorCode::kDeadlineExceeded;
    error_ = {
        ErrorCode::kDeadlineExceeded,
        fmt::format(
            "{} has said nothing for {} s while it is listed, after {} objects",
            origin_.describe(),
            seconds_of(silence),
            objects_listed())};
    if (is_news) {
        log::warning(
            "the listing stands still", {{"dataset", config_.name}, {"error", error_.message}});
    }
}

}  // namespace stoker::sidecar

#include "sidecar/service/leader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "sidecar/service/make_eviction.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kListingPatience = std::chrono::seconds{30};
constexpr Duration kRetryMin = std::chrono::seconds{1};
constexpr Duration kRetryMax = std::chrono::seconds{30};
constexpr Duration kUpkeepInterval = std::chrono::seconds{1};
constexpr Bytes kCompactBudgetMin = mib(16);
constexpr std::uint64_t kPlannedMin = 16U << 20U;  // positions, about 8 bytes each
constexpr std::uint64_t kPendingSamplesMax = 1U << 20U;
constexpr const char* kSteppedAside =
    "stepping aside: the node's disk is slower than the origin, trainers read the origin "
    "themselves";

StepAside::Limits step_aside_limits(const DatasetConfig& config) {
    StepAside::Limits limits;
    limits.window = config.step_aside_window;
    limits.pause_min = 6 * config.step_aside_window;
    return limits;
}

EngineLimits limits_of(const DatasetConfig& config) {
    EngineLimits limits;
    limits.window = config.window_bytes;
    limits.memory = config.memory_bytes;
    limits.max_in_flight = config.max_in_flight;
    limits.readahead = config.readahead_bytes;
    limits.page_cache = config.page_cache_bytes;
    return limits;
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
    options.window_bytes = config.window_bytes;
    options.store.reserved_free = config.reserved_free;
    options.store.boot_id = parts.boot_id;
    return options;
}

}  // namespace

EngineGrant first_grant(const SidecarParts& parts, const DatasetConfig& config) {
    if (parts.operator_grants) {
        return {Bytes::unlimited(), TimePoint{}};
    }
    return {config.grant_bytes, std::nullopt};
}

Leader::Leader(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    RevisionGate& gate,
    ReadingListener& listener,
    Callbacks callbacks,
    bool keep_revision)
    : parts_(parts),
      config_(config),
      origin_(origin),
      gate_(gate),
      listener_(listener),
      callbacks_(std::move(callbacks)),
      keep_revision_(keep_revision),
      grant_{first_grant(parts, config)},
      own_rooms_{Holdings{0, 0}, Holdings{kPendingSamplesMax, kPendingSamplesMax / 2}},
      guest_rooms_{Holdings{0, 0}, Holdings{kPendingSamplesMax / 2, kPendingSamplesMax / 4}},
      objects_listed_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      retry_delay_(kRetryMin),
      step_aside_(step_aside_limits(config)),
      listing_watch_(kListingPatience) {
    prepare();
}

Leader::~Leader() {
    for (const TimerId timer :
         {prepare_timer_, gate_timer_, listing_timer_, tick_timer_, upkeep_timer_}) {
        parts_.loop.cancel(timer);
    }
}

void Leader::prepare() {
    state_ = LeaderState::kPreparing;
    *objects_listed_ = 0;
    listing_watch_.begin(parts_.loop.now());
    parts_.loop.cancel(listing_timer_);
    tell_listing();
    PreparationOptions options = preparation_options(parts_, config_, origin_);
    options.keep_revision = keep_revision_;
    options.list_again = list_again_;
    preparing_ = start_thread("prepare", [this, options](const std::stop_token& stop) {
        auto prepared = std::make_shared<Result<Preparation>>(prepare_dataset(
            parts_.device,
            origin_,
            options,
            [count = objects_listed_](std::uint64_t objects) { *count = objects; },
            stop));
        parts_.loop.post([this, alive = std::weak_ptr<int>{alive_}, prepared] {
            if (!alive.expired()) {
                on_prepared(std::move(*prepared));
            }
        });
    });
}

void Leader::on_prepared(Result<Preparation> prepared) {
    if (prepared) {
        prepared_ = *std::move(prepared);
        marks_ = std::exchange(prepared_->marks, {});
        settle_revision();
        return;
    }
    parts_.loop.cancel(listing_timer_);
    state_ = LeaderState::kFailed;
    last_error_ = prepared.error();
    log::warning(
        "dataset cannot be served yet",
        {{"dataset", config_.name},
         {"code", to_string(last_error_.code)},
         {"error", last_error_.message},
         {"retry_seconds",
          std::chrono::duration_cast<std::chrono::seconds>(retry_delay_).count()}});
    for (const ConnectionId id : std::exchange(waiting_, {})) {
        sessions_.at(id)->refuse(last_error_);
    }
    prepare_timer_ = parts_.loop.run_at(parts_.loop.now() + retry_delay_, [this] { prepare(); });
    retry_delay_ = std::min(retry_delay_ * 2, kRetryMax);
    if (last_error_.code == ErrorCode::kForbidden) {
        callbacks_.forbidden(last_error_);
    }
}

void Leader::begin_serving(Preparation prepared) {
    manifest_ = std::move(prepared.manifest);
    store_ = std::move(prepared.store);
    const auto& view = manifest_->view();
    const std::uint64_t positions = std::max(kPlannedMin, 2 * view.sample_count());
    own_rooms_.plan = Holdings{positions, positions / 4 * 3};
    const std::uint64_t one_plan = view.sample_count() + 2 * local::kAheadSamplesMax;
    guest_rooms_.plan =
        Holdings{std::max(kPlannedMin / 2, one_plan), std::max(kPlannedMin / 4, one_plan)};
    engine_ = std::make_unique<DatasetEngine>(
        view, limits_of(config_), grant_, make_eviction(config_.eviction));
    engine_->importance().set_weights(weights_);
    for (const auto& [sample, segment_class] : prepared.stored) {
        engine_->adopt(sample, segment_class);
    }
    state_ = LeaderState::kServing;
    last_error_ = {};
    const RecoveryReport recovery = store_->recovery();
    log::info(
        "serving",
        {{"dataset", config_.name},
         {"revision", domain::to_string(view.revision())},
         {"samples", view.sample_count()},
         {"bytes", view.total_bytes().count()},
         {"resident_samples", engine_->fetch().account().resident_samples},
         {"segments_dropped", recovery.segments_dropped},
         {"samples_dropped", recovery.samples_dropped}});
    apply(engine_->fetch().open(parts_.loop.now()));
    upkeep();
    parts_.loop.cancel(listing_timer_);
    for (const ConnectionId id : std::exchange(waiting_, {})) {
        admit(*sessions_.at(id));
    }
}

void Leader::attach(Session& session) {
    sessions_[session.id()] = &session;
    switch (state_) {
        case LeaderState::kServing:
            admit(session);
            return;
        case LeaderState::kPreparing:
            waiting_.insert(session.id());
            session.send_listing(*objects_listed_);
            return;
        case LeaderState::kFailed:
            session.refuse(last_error_);
            return;
    }
}

void Leader::welcome(Session& session) {
    const auto& view = manifest_->view();
    engine_->fetch().on_connect(session.id(), session.stream(), session.party());
    welcomed_.insert(session.id());
    local::Welcome welcome;
    welcome.revision = view.revision().value();
    welcome.sample_count = view.sample_count();
    welcome.directory = config_.client_directory;
    welcome.features = local::kFeatureContracts | local::kFeatureProbe | local::kFeatureCounts |
                       local::kFeatureAhead;
    session.send_welcome(welcome);
}

void Leader::detach(Session& session) {
    if (session.stream() && is_last_of_stream(session)) {
        give_plan_room(*session.stream());
        guest_streams_.erase(*session.stream());
    }
    if (const auto pending = pending_samples_.extract(session.id())) {
        rooms(!session.guest().empty()).pending.give(session.sidecar(), pending.mapped());
    }
    waiting_.erase(session.id());
    sessions_.erase(session.id());
    if (welcomed_.erase(session.id()) > 0) {
        stop_drawing(session.id());
        apply(engine_->fetch().on_disconnect(session.id(), parts_.loop.now()));
    }
}

void Leader::set_grant(EngineGrant grant) {
    grant_ = grant;
    if (engine_ != nullptr) {
        apply(engine_->fetch().on_grant(effective_grant(), parts_.loop.now()));
    }
}

// The disk sets a limit of its own: residents leave room for the window, which every miss needs.
EngineGrant Leader::effective_grant() const {
    EngineGrant grant = grant_;
    grant.resident_bytes = std::min(grant.resident_bytes, resident_cap_);
    return grant;
}

// Every second: how much more the residents may take of the disk, and cleaning.
void Leader::upkeep() {
    const StoreUsage usage = store_->usage();
    if (const auto space = parts_.device.space(config_.directory)) {
        const Bytes reserved{static_cast<std::uint64_t>(
            static_cast<double>(space->total.count()) * config_.reserved_free)};
        // Half as much again: a window segment is on the disk until its last sample is read.
        const Bytes window = config_.window_bytes + Bytes{config_.window_bytes.count() / 2};
        const Bytes room = space->available - reserved - (window - usage.window_bytes);
        kept_free_ = reserved + window;
        resident_cap_ = std::max(engine_->fetch().account().resident, usage.resident_bytes + room);
    }
    if (effective_grant().resident_bytes != engine_->fetch().grant().resident_bytes) {
        apply(engine_->fetch().on_grant(effective_grant(), parts_.loop.now()));
    }
    watch_disk();
    clean(usage);
    upkeep_timer_ = parts_.loop.run_at(parts_.loop.now() + kUpkeepInterval, [this] { upkeep(); });
}

// Never slower than bypass: trainers read the origin themselves while our disk is the bottleneck.
void Leader::watch_disk() {
    const TimePoint now = parts_.loop.now();
    const bool before = step_aside_.is_aside();
    step_aside_.step(now, parts_.device.counters().write_blocked);
    if (step_aside_.is_aside() == before) {
        return;
    }
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const StepAside::Finding& finding = step_aside_.finding();
    log::warning(
        before ? "trying the disk again after stepping aside" : kSteppedAside,
        {{"dataset", config_.name},
         {"origin_ms", Milliseconds{finding.origin}.count()},
         {"store_ms", Milliseconds{finding.store}.count()},
         {"disk_wait_share", finding.blocked_share}});
    apply(engine_->fetch().on_aside(!before, now));
}

// Cleaning keeps up with what is written: what dies in a second is about as much.
void Leader::clean(const StoreUsage& usage) {
    if (std::exchange(compacting_, true)) {
        return;
    }
    const Bytes written = usage.written_bytes - std::exchange(compacted_at_, usage.written_bytes);
    const Bytes budget = std::max(kCompactBudgetMin, written);
    on_pool(
        [this, budget] {
            if (const auto done = store_->compact(budget); !done) {
                log::debug("cleaning failed", {{"error", done.error().message}});
            }
        },
        [this] { compacting_ = false; });
}

namespace {

control::ManifestState manifest_state(LeaderState state) {
    return state == LeaderState::kServing  ? control::ManifestState::kReady
           : state == LeaderState::kFailed ? control::ManifestState::kFailed
                                           : control::ManifestState::kListing;
}

std::vector<control::RankSketch> rank_sketches(const std::vector<JobSketch>& sketches) {
    std::vector<control::RankSketch> result;
    for (const JobSketch& sketch : sketches) {
        result.push_back({sketch.job_uid, sketch.revision, sketch.masses, sketch.volume});
    }
    return result;
}

void set_usage(LeaderStatus& status, const StoreUsage& usage) {
    status.usage = usage;
    status.resident_bytes = usage.resident_bytes;
    status.resident_samples = usage.resident_samples;
    status.window_bytes = usage.window_bytes;
}

}  // namespace

LeaderStatus Leader::status() const {
    LeaderStatus status;
    status.state = state_;
    status.leader = true;
    status.manifest_state = manifest_state(state_);
    status.objects_listed = *objects_listed_;
    status.error = last_error_.message;
    status.granted_bytes = grant_.resident_bytes;
    status.origin_requests = origin_requests_;
    status.origin_bytes_read = origin_bytes_;
    status.origin_request_time = origin_request_time_;
    status.marks = marks();
    status.changed_key = changed_key_;
    if (engine_ == nullptr) {
        return status;
    }
    status.sketches = rank_sketches(engine_->importance().sketches());
    const auto& view = manifest_->view();
    status.revision = domain::to_string(view.revision());
    status.samples = view.sample_count();
    status.total_bytes = view.total_bytes();
    status.bytes = engine_->fetch().account();
    status.counters = engine_->fetch().counters();
    status.corrupt_samples = status.counters.corrupt_samples;
    set_usage(status, store_->usage());
    status.recovery = store_->recovery();
    status.aside = step_aside_.is_aside();
    if (!resident_cap_.is_unlimited()) {
        status.disk_limit = control::DiskLimit{resident_cap_, kept_free_};
    }
    status.admitting = engine_->fetch().is_admitting() && !status.aside;
    status.error = !engine_->fetch().last_store_error().empty()
                       ? engine_->fetch().last_store_error()
                       : engine_->fetch().last_origin_error();
    status.error = status.aside ? kSteppedAside : status.error;
    return status;
}

void Leader::retire(std::function<void()> on_idle) {
    retiring_ = true;
    on_idle_ = std::move(on_idle);
    preparing_ = {};
    for (const TimerId timer :
         {prepare_timer_, gate_timer_, listing_timer_, tick_timer_, upkeep_timer_}) {
        parts_.loop.cancel(timer);
    }
    for (const auto& [id, session] : sessions_) {
        session->hang_up();
    }
    sessions_.clear();
    waiting_.clear();
    welcomed_.clear();
    ++busy_;
    end_work();
}

void Leader::on_pool(std::function<void()> work, std::function<void()> then) {
    ++busy_;
    parts_.io.post([this, work = std::move(work), then = std::move(then)] {
        work();
        post([this, then] {
            then();
            end_work();
        });
    });
}

// Our owner may destroy us in on_idle_, so that it is told from outside.
void Leader::end_work() {
    if (--busy_ == 0 && on_idle_) {
        post(std::exchange(on_idle_, nullptr));
    }
}

Status Leader::close_store() {
    if (prepared_) {
        return prepared_->store->close();
    }
    return store_ == nullptr ? Status{} : store_->close();
}

void Leader::post(std::function<void()> task) {
    parts_.loop.post([alive = std::weak_ptr<int>{alive_}, task = std::move(task)] {
        if (!alive.expired()) {
            task();
        }
    });
}

}  // namespace stoker::sidecar

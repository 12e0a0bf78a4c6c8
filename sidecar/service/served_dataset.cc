#include "sidecar/service/served_dataset.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log/log.h"
#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"

namespace stoker::sidecar {

using domain::SampleId;

namespace {

constexpr Duration kUpkeepInterval = std::chrono::seconds{1};
constexpr Bytes kCompactBudgetMin = mib(16);
constexpr const char* kSteppedAside =
    "stepping aside: the node's disk is slower than the origin, trainers read the origin "
    "themselves";

BypassController::Limits bypass_limits(const DatasetConfig& config) {
    BypassController::Limits limits;
    limits.window = config.step_aside_window;
    limits.pause_min = 6 * config.step_aside_window;
    return limits;
}

EngineLimits limits_of(const DatasetConfig& config, const Origin& origin) {
    EngineLimits limits;
    limits.window = config.window_bytes;
    limits.memory = config.memory_bytes;
    limits.max_in_flight = std::min(config.max_in_flight, origin.capacity().fetches);
    limits.readahead = config.readahead_bytes;
    limits.page_cache = config.page_cache_bytes;
    return limits;
}

// nullptr: kAuto, where the jobs' contracts choose the policy.
std::unique_ptr<EvictionPolicy> make_eviction(EvictionKind kind) {
    switch (kind) {
        case EvictionKind::kLru:
            return std::make_unique<Lru>();
        case EvictionKind::kLfu:
            return std::make_unique<Lfu>();
        case EvictionKind::kNever:
            return std::make_unique<NeverEvict>();
        case EvictionKind::kAuto:
            break;
    }
    return nullptr;
}

}  // namespace

ServedDataset::ServedDataset(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    Preparation prepared,
    EngineGrant grant,
    const JobWeights& weights,
    std::function<void(const Error&)> on_forbidden)
    : parts_(parts),
      config_(config),
      origin_(origin),
      on_forbidden_(std::move(on_forbidden)),
      grant_(grant),
      manifest_(std::move(prepared.manifest)),
      store_(std::move(prepared.store)),
      engine_(std::make_unique<DatasetEngine>(
          manifest(),
          limits_of(config, origin),
          grant,
          make_eviction(config.eviction),
          std::move(prepared.chunks))),
      bypass_(bypass_limits(config)),
      tick_timer_(parts.loop),
      upkeep_timer_(parts.loop),
      tasks_(parts.loop) {
    parts_fetcher_ = make_parts_fetcher(limits_of(config, origin));
    engine_->importance().set_weights(weights);
    for (const auto& [sample, segment_class] : prepared.stored) {
        engine_->adopt(sample, segment_class);
    }
    const RecoveryReport recovery = store_->recovery();
    log::info(
        "serving",
        {{"dataset", config_.name},
         {"revision", domain::to_string(manifest().revision())},
         {"samples", manifest().sample_count()},
         {"bytes", manifest().total_bytes().count()},
         {"resident_samples", engine_->fetch().account().resident_samples},
         {"segments_dropped", recovery.segments_dropped},
         {"samples_dropped", recovery.samples_dropped}});
    apply(engine_->fetch().open(parts_.loop.now()));
    upkeep();
}

void ServedDataset::apply(Effects effects) {
    if (retiring_) {
        return;  // stored samples stay, no new work starts
    }
    for (const SampleIndex sample : effects.drops) {
        store_->drop(SampleId{sample});
    }
    std::ranges::for_each(effects.stops, [this](auto id) { parts_fetcher_->stop(id); });
    start_fetches(effects.fetches);
    parts_fetcher_->go_on();
    for (const SampleIndex sample : effects.verifies) {
        start_verify(sample);
    }
    if (!effects.will_need.empty() || !effects.wont_need.empty()) {
        on_pool(
            [this,
             will_need = std::move(effects.will_need),
             wont_need = std::move(effects.wont_need)] {
                std::ranges::for_each(
                    will_need, [this](auto id) { store_->will_need(SampleId{id}); });
                std::ranges::for_each(
                    wont_need, [this](auto id) { store_->wont_need(SampleId{id}); });
            },
            [] {});
    }
    for (const FetchReply& answer : effects.replies) {
        if (!on_peer_reply_ || !on_peer_reply_(answer)) {
            on_reply_(answer);
        }
    }
    engine_->fetch().set_max_in_flight(std::min(config_.max_in_flight, origin_.capacity().fetches));
    schedule_tick();
}

// Starts fetches. Passes those for the origin on in one call, so that the origin can combine them;
// asks peers for each sample separately.
void ServedDataset::start_fetches(const std::vector<StartFetch>& fetches) {
    std::vector<StartFetch> at_origin;
    for (const StartFetch& fetch : fetches) {
        if (fetch.from_peer) {
            start_at_peer(fetch);
            continue;
        }
        if (placement_ != nullptr && !placement_->is_own(fetch.sample)) {
            peers_->note_not_asked(fetch.sample);
        }
        if (hedges_.contains(fetch.sample)) {
            ++busy_;
            peer_fetches_[fetch.sample] = {fetch};
            await_hedge(fetch.sample);
        } else if (fetch.in_parts) {
            ++busy_;
            parts_fetcher_->start(fetch, parts_.loop.now());
        } else {
            at_origin.push_back(fetch);
        }
    }
    start_at_origin(at_origin, parts_.loop.now(), 0);
}

// `started_at` and `attempts` are those of the first fetch, if its bytes were damaged.
void ServedDataset::start_at_origin(
    const std::vector<StartFetch>& fetches, TimePoint started_at, std::uint32_t attempts) {
    if (retiring_ || fetches.empty()) {
        return;
    }
    std::vector<OriginRequest> requests;
    requests.reserve(fetches.size());
    for (const StartFetch& fetch : fetches) {
        const auto info = manifest().sample(SampleId{fetch.sample});
        requests.push_back(
            {{std::string{info.key}, std::string{info.etag}, info.size_bytes, attempts},
             [this, fetch, started_at](OriginAnswer answer) {
                 on_origin_answer(fetch, started_at, std::move(answer));
             }});
    }
    busy_ += requests.size();
    origin_.fetch_together(std::move(requests));
}

// Runs on a thread of the origin. If several samples shared a request, only one of them counts the
// request and its time.
void ServedDataset::on_origin_answer(
    const StartFetch& fetch, TimePoint started_at, OriginAnswer answer) {
    if (!answer.bytes) {
        tasks_.post([this,
                     fetch,
                     started_at,
                     error = answer.bytes.error(),
                     requests = answer.failed_requests] {
            on_fetch_failed(fetch, started_at, error, requests);
            end_work();
        });
        return;
    }
    store_origin_bytes(fetch, started_at, std::make_shared<OriginBytes>(*std::move(answer.bytes)));
}

// Stores a fetched sample. Any thread.
void ServedDataset::store_origin_bytes(
    const StartFetch& fetch, TimePoint started_at, std::shared_ptr<OriginBytes> shared) {
    const TimePoint arrived_at = parts_.loop.now();
    parts_.io.post([this, fetch, started_at, arrived_at, shared] {
        const auto stored = store_->append(
            SampleId{fetch.sample}, shared->payload, fetch.segment_class, shared->stored_crc32c);
        const Status status = stored ? Status{} : Status{fail(stored.error())};
        const FetchTimes times{arrived_at - started_at, parts_.loop.now() - arrived_at};
        const bool is_damaged = !status && status.error().code == ErrorCode::kCorruption &&
                                shared->stored_crc32c.has_value();
        tasks_.post([this,
                     fetch,
                     started_at,
                     status,
                     is_damaged,
                     times,
                     requests = shared->requests,
                     attempts = shared->attempts,
                     request_time = shared->request_time] {
            origin_requests_ += requests;
            if (is_damaged) {
                start_at_origin({fetch}, started_at, attempts);
            } else {
                origin_request_time_ += requests > 0 ? times.origin : Duration::zero();
                on_append_done(fetch, status, times, request_time);
            }
            end_work();
        });
    });
}

void ServedDataset::on_append_done(
    const StartFetch& fetch, const Status& status, const FetchTimes& times, Duration request_time) {
    const Bytes size = engine_->fetch().sizes().of(fetch.sample);
    engine_->note_load(size, request_time);
    if (peers_ != nullptr) {
        peers_->note_origin(times.origin);
    }
    origin_bytes_ += size;
    forbidden_in_row_ = 0;
    if (status) {
        bypass_.on_stored(times);
    }
    on_stored(fetch.sample, status);
}

void ServedDataset::on_stored(SampleIndex sample, const Status& status) {
    const TimePoint now = parts_.loop.now();
    if (status) {
        apply(engine_->fetch().on_stored(sample, now));
        return;
    }
    if (engine_->fetch().admission().is_admitting()) {
        log::warning(
            "cannot store new samples for now",
            {{"dataset", config_.name},
             {"code", to_string(status.error().code)},
             {"error", status.error().message}});
    }
    apply(engine_->fetch().on_store_failed(sample, status.error(), now));
}

void ServedDataset::start_verify(SampleIndex sample) {
    const auto intact = std::make_shared<bool>(false);
    on_pool(
        [this, sample, intact] { *intact = store_->verify(SampleId{sample}); },
        [this, sample, intact] {
            if (!*intact) {
                log::warning(
                    "a stored sample was damaged; fetching it again",
                    {{"dataset", config_.name}, {"sample", sample}});
            }
            apply(engine_->fetch().on_verified(sample, *intact, parts_.loop.now()));
        });
}

void ServedDataset::schedule_tick() {
    const auto next = engine_->fetch().next_deadline(parts_.loop.now());
    if (next == tick_at_) {
        return;
    }
    tick_timer_.cancel();
    tick_at_ = next;
    if (next) {
        tick_timer_.run_at(*next, [this] {
            tick_at_.reset();
            apply(engine_->fetch().tick(parts_.loop.now()));
        });
    }
}

// Runs every second: updates the residents' disk limit and cleans.
void ServedDataset::upkeep() {
    const StoreUsage usage = store_->usage();
    if (const auto space = parts_.device.space(config_.directory)) {
        const Bytes reserved{static_cast<std::uint64_t>(
            static_cast<double>(space->total.count()) * config_.reserved_free)};
        // Half as much again: a window segment stays until its last sample is read.
        const auto on_disk = [](Bytes window) { return window + Bytes{window.count() / 2}; };
        const Bytes window = std::max(engine_->fetch().window(), engine_->fetch().account().window);
        const Bytes room = space->available - reserved - (on_disk(window) - usage.window_bytes);
        kept_free_ = reserved + on_disk(config_.window_bytes);
        engine_->fetch().set_disk_room(space->available - reserved);
        // Adds the bytes that the window has borrowed, because the engine subtracts them later.
        const Bytes stored = usage.resident_bytes + usage.unfinished_bytes;
        resident_cap_ = std::max(engine_->fetch().account().resident, stored + room) +
                        (window - config_.window_bytes);
    }
    if (effective_grant().resident_bytes != engine_->fetch().grant().resident_bytes) {
        apply(engine_->fetch().on_grant(effective_grant(), parts_.loop.now()));
    }
    watch_disk();
    clean(usage);
    upkeep_timer_.run_in(kUpkeepInterval, [this] { upkeep(); });
}

// Bypasses the disk while it is slower than the origin, so that the cache costs no time.
void ServedDataset::watch_disk() {
    const TimePoint now = parts_.loop.now();
    const bool before = bypass_.is_aside();
    bypass_.step(now, parts_.device.counters().write_blocked);
    if (bypass_.is_aside() == before) {
        return;
    }
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const BypassController::Finding& finding = bypass_.finding();
    log::warning(
        before ? "trying the disk again after stepping aside" : kSteppedAside,
        {{"dataset", config_.name},
         {"origin_ms", Milliseconds{finding.origin}.count()},
         {"store_ms", Milliseconds{finding.store}.count()},
         {"disk_wait_share", finding.blocked_share}});
    apply(engine_->fetch().on_aside(!before, now));
}

// Compacts as many bytes as were written since the last call, because about as many became garbage.
void ServedDataset::clean(const StoreUsage& usage) {
    if (std::exchange(compacting_, true)) {
        return;
    }
    const Bytes written = usage.written_bytes - std::exchange(compacted_at_, usage.written_bytes);
    const Bytes budget = std::max(kCompactBudgetMin, written);
    on_pool(
        [this, budget] {
            if (const auto done = store_->compact(budget); !done) {
                log::debug("compacting segments failed", {{"error", done.error().message}});
            }
        },
        [this] { compacting_ = false; });
}

void ServedDataset::tell(LeaderStatus& status) const {
    const FetchEngine& fetch = std::as_const(*engine_).fetch();
    for (const JobSketch& sketch : engine_->importance().sketches()) {
        status.sketches.push_back({sketch.job_uid, sketch.revision, sketch.masses, sketch.volume});
    }
    status.revision = domain::to_string(manifest().revision());
    status.samples = manifest().sample_count();
    status.total_bytes = manifest().total_bytes();
    status.origin_requests = origin_requests_;
    status.origin_bytes_read = origin_bytes_;
    status.origin_request_time = origin_request_time_;
    status.changed_key = changed_key_;
    tell_peers(status);
    tell_fill(status);
    status.bytes = fetch.account();
    status.counters = fetch.counters();
    status.corrupt_samples = status.counters.corrupt_samples;
    status.usage = store_->usage();
    status.bytes.in_flight += status.usage.unfinished_bytes;
    status.resident_bytes = status.usage.resident_bytes + unfinished_residents();
    status.resident_samples = status.usage.resident_samples;
    status.window_bytes = status.usage.window_bytes;
    status.window_size = fetch.window();
    status.origin_concurrency = fetch.max_in_flight();
    status.aside = bypass_.is_aside();
    status.window_lacks_bytes = engine_->window_lack();
    if (status.window_lacks_bytes > Bytes::zero()) {
        status.window_needed_bytes = engine_->window_needed();
    }
    if (!resident_cap_.is_unlimited()) {
        status.disk_limit = control::DiskLimit{resident_cap_, kept_free_};
    }
    status.admitting = fetch.admission().is_admitting() && !status.aside;
    status.error = status.aside                             ? kSteppedAside
                   : !fetch.admission().store_error.empty() ? fetch.admission().store_error
                                                            : fetch.admission().origin_error;
}

void ServedDataset::retire(std::function<void()> on_idle) {
    retiring_ = true;
    on_idle_ = std::move(on_idle);
    tick_timer_.cancel();
    upkeep_timer_.cancel();
    leave_peers();
    parts_fetcher_->stop();
    ++busy_;
    end_work();
}

void ServedDataset::on_pool(std::function<void()> work, std::function<void()> then) {
    ++busy_;
    parts_.io.post([this, work = std::move(work), then = std::move(then)] {
        work();
        tasks_.post([this, then] {
            then();
            end_work();
        });
    });
}

// Calls on_idle_ from the event loop, because on_idle_ may destroy this object.
void ServedDataset::end_work() {
    if (--busy_ == 0 && on_idle_) {
        tasks_.post(std::exchange(on_idle_, nullptr));
    }
}

}  // namespace stoker::sidecar

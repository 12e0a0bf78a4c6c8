#include "operator/core/status/summarize_warmup.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/api/time_format.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/spec/packing.h"
#include "operator/core/spec/validate.h"
#include "operator/core/status/judge_silence.h"
#include "operator/core/status/warmup_schedule.h"
#include "operator/core/sweep/plan_fillers.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"
#include "operator/core/view/warmups.h"

namespace stoker::control {

namespace {

constexpr const char* kRunning = "Running";
constexpr const char* kFits = "Fits";
constexpr const char* kReporting = "Reporting";

std::string print(std::int64_t bytes) {
    return to_string(bytes_of(bytes));
}

class Summary {
public:
    Summary(const WarmupView& view, const Moment& now)
        : view_(view),
          now_(now),
          status_(view.warmup.status) {}

    DatasetWarmupStatus take() {
        status_.observed_generation = view_.warmup.meta.generation;
        judge_times();
        if (is_finished(view_.warmup)) {
            return std::move(status_);
        }
        if (const auto blocker = find_blocker()) {
            block(*blocker);
        } else {
            run();
        }
        print_columns();
        return std::move(status_);
    }

private:
    void set(const char* type, Condition answer) {
        set_condition(status_.conditions, type, std::move(answer), view_.warmup.meta, now_);
    }

    // Also updates a warm-up that has ended; its other conditions stay as they are.
    void judge_times() {
        if (std::optional<Condition> scheduled = judge_schedule(view_.warmup)) {
            set(kWarmupScheduled, std::move(*scheduled));
        } else {
            drop_condition(status_.conditions, kWarmupScheduled);
        }
    }

    [[nodiscard]] std::optional<Blocker> find_blocker() const {
        const DatasetWarmupSpec& spec = view_.warmup.spec;
        if (const std::vector<FieldError> errors = validate(view_.warmup); !errors.empty()) {
            return Blocker{"Invalid", to_string(errors)};
        }
        if (spec.suspend) {
            return Blocker{"Suspended", "spec.suspend is true; bytes on the nodes stay there."};
        }
        if (is_before_first_run(view_.warmup)) {
            return Blocker{"Scheduled", tell_next()};
        }
        if (!view_.dataset) {
            return Blocker{
                "DatasetNotFound",
                fmt::format("Dataset {} does not exist in this namespace.", spec.dataset_ref)};
        }
        if (const std::vector<FieldError> errors = validate(*view_.dataset); !errors.empty()) {
            return Blocker{
                "DatasetInvalid",
                fmt::format("Dataset {} is invalid: {}", spec.dataset_ref, to_string(errors))};
        }
        if (!is_packed(*view_.dataset)) {
            return Blocker{"DatasetNotPacked", tell_packing(*view_.dataset)};
        }
        return status_.nodes.empty() ? find_node_blocker() : std::nullopt;
    }

    [[nodiscard]] std::string tell_next() const {
        return status_.next_schedule_time
                   ? fmt::format(
                         "The first run begins at {}.", format_time(*status_.next_schedule_time))
                   : "spec.schedule has no time in the next years.";
    }

    [[nodiscard]] std::optional<Blocker> find_node_blocker() const {
        if (!view_.cache_pool) {
            return Blocker{
                "NoPool",
                view_.pool.blocker.empty() ? "There is no CachePool to keep the bytes in."
                                           : view_.pool.blocker.message};
        }
        if (chosen().empty()) {
            return Blocker{
                "NoNodes",
                fmt::format(
                    "CachePool {} has no ready node that spec.nodes allows.", view_.pool.name)};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<std::string> chosen() const {
        return choose_nodes(view_.warmup.spec, *view_.cache_pool, view_.nodes, *view_.dataset);
    }

    void block(const Blocker& blocker) {
        status_.start_time.reset();
        set(kRunning, fails(blocker.reason, blocker.message));
        // Resets the transition time of Fits, from which judge_full() waits kWarmupFullFor.
        set(kFits, unknown(blocker.reason, blocker.message));
        set(kWarmupComplete.data(), fails(blocker.reason, blocker.message));
        const bool is_state = blocker.reason == "Invalid" || blocker.reason == "Suspended" ||
                              blocker.reason == "Scheduled";
        state_ = is_state ? blocker.reason : "Pending";
        for (WarmupNodeStatus& node : status_.nodes) {
            node.state = kWarmupNodeWaiting;
            node.message.clear();
            node.silent_since.reset();
        }
        set(kReporting, unknown(blocker.reason, blocker.message));
    }

    void run() {
        if (status_.nodes.empty()) {
            status_.pool = view_.pool.name;
            for (const std::string& node : chosen()) {
                status_.nodes.emplace_back().node = node;
            }
        }
        if (!status_.start_time) {
            status_.start_time = std::chrono::floor<std::chrono::seconds>(now_.wall);
        }
        for (WarmupNodeStatus& node : status_.nodes) {
            update(node);
        }
        add_up();
        set(kReporting, judge_silence(status_.nodes, view_, now_));
        judge();
    }

    // The newest report of the node's leader.
    [[nodiscard]] std::pair<const SidecarReport*, const DatasetReport*> leader_on(
        const std::string& node) const {
        std::pair<const SidecarReport*, const DatasetReport*> newest{};
        for (const SidecarReport& report : view_.reports) {
            if (report.node != node || !is_fresh(report, now_)) {
                continue;
            }
            for (const DatasetReport& told : report.datasets) {
                const bool is_leader = told.leader && told.dataset_uid == view_.dataset->meta.uid;
                if (is_leader &&
                    (newest.first == nullptr || newest.first->received_at < report.received_at)) {
                    newest = {&report, &told};
                }
            }
        }
        return newest;
    }

    // Why nothing can be warmed on the node any more; empty: it can.
    [[nodiscard]] std::string tell_gone(const std::string& name) const {
        if (!view_.cache_pool || view_.cache_pool->meta.deleting_since) {
            return fmt::format("CachePool {} is deleted", status_.pool);
        }
        const auto node = std::ranges::find(
            view_.nodes, name, [](const Node& candidate) { return candidate.meta.name; });
        if (node == view_.nodes.end()) {
            return "is not in the cluster any more";
        }
        if (!matches(view_.cache_pool->spec.node_selector, node->meta.labels)) {
            return fmt::format("is not in CachePool {} any more", status_.pool);
        }
        const bool is_away = !node->ready && node->not_ready_since &&
                             now_.wall - *node->not_ready_since >= kWarmupNodeGoneAfter;
        return is_away ? "has not been ready for 10 minutes" : "";
    }

    void update(WarmupNodeStatus& node) {
        if (std::string words = tell_gone(node.node); !words.empty()) {
            node.state = kWarmupNodeGone;
            node.message = std::move(words);
            node.silent_since.reset();
            return;
        }
        const auto [report, told] = leader_on(node.node);
        if (told == nullptr) {
            wait_for_filler(node);
            return;
        }
        node.silent_since.reset();
        status_.sampled_at = std::max(
            status_.sampled_at,
            std::optional<WallTime>(
                std::chrono::floor<std::chrono::seconds>(report->received_wall)));
        if (told->manifest_state != ManifestState::kReady) {
            node.state = kWarmupNodeWaiting;
            node.message =
                told->error.empty()
                    ? fmt::format("lists the origin, {} objects so far", told->objects_listed)
                    : told->error;
        } else if (!told->fill) {
            node.state = kWarmupNodeWaiting;
            node.message = "waits for the other nodes, or for its grant";
        } else {
            take_progress(*told, node);
        }
    }

    void wait_for_filler(WarmupNodeStatus& node) {
        const bool has_reported = node.total_samples > 0;
        if (!node.silent_since) {
            const Duration unnoticed = has_reported ? Duration{kReportAgeMax} : Duration{};
            node.silent_since = std::chrono::floor<std::chrono::seconds>(now_.wall - unnoticed);
        }
        const bool is_lost = silence_of(node, view_, now_) >= kWarmupNodeLostAfter;
        node.state = is_lost        ? kWarmupNodeLost
                     : has_reported ? kWarmupNodeSilent
                                    : kWarmupNodeWaiting;
        node.message = fmt::format(
            "no leading sidecar has reported since {}", format_time(*node.silent_since));
    }

    void take_progress(const DatasetReport& told, WarmupNodeStatus& node) {
        const FillProgress& fill = *told.fill;
        node.total_bytes = count_of(fill.bytes);
        node.total_samples = count_of(fill.samples);
        node.bytes_warmed = count_of(fill.stored_bytes);
        node.samples_warmed = count_of(fill.stored_samples);
        node.samples_refused = count_of(fill.refused_samples);
        node.message.clear();
        if (fill.stored_samples == fill.samples) {
            node.state = kWarmupNodeDone;
        } else if (fill.shut) {
            node.state = kWarmupNodeWaiting;
            node.message = told.error.empty() ? "its grant has expired" : told.error;
        } else if (fill.over) {
            node.state = kWarmupNodeFull;
            node.message = fmt::format(
                "granted {}{}", to_string(told.granted_bytes), told.error.empty() ? "" : ": ");
            node.message += told.error;
        } else {
            node.state = kWarmupNodeFilling;
            node.message = told.error.empty() && view_.jobs_use_origin
                               ? "jobs use all of the pool's originBandwidth"
                               : told.error;
        }
    }

    void add_up() {
        status_.total_bytes = status_.total_samples = 0;
        status_.bytes_warmed = status_.samples_warmed = 0;
        for (const WarmupNodeStatus& node : status_.nodes) {
            status_.total_bytes = add_saturated(status_.total_bytes, node.total_bytes);
            status_.total_samples = add_saturated(status_.total_samples, node.total_samples);
            status_.bytes_warmed = add_saturated(status_.bytes_warmed, node.bytes_warmed);
            status_.samples_warmed = add_saturated(status_.samples_warmed, node.samples_warmed);
            refused_ = add_saturated(refused_, node.samples_refused);
        }
    }

    [[nodiscard]] bool all_in(std::initializer_list<std::string_view> states) const {
        return std::ranges::all_of(status_.nodes, [&](const WarmupNodeStatus& node) {
            return std::ranges::find(states, node.state) != states.end();
        });
    }

    [[nodiscard]] std::string tell_progress() const {
        return fmt::format(
            "{} of {} in {} samples on {} nodes.",
            print(status_.bytes_warmed),
            print(status_.total_bytes),
            status_.samples_warmed,
            status_.nodes.size());
    }

    // Samples of the Dataset that are owned by nodes that the warm-up has not chosen.
    [[nodiscard]] std::string tell_others() const {
        std::uint64_t samples = 0;
        for (const WarmupNodeStatus& node : status_.nodes) {
            const auto told = leader_on(node.node).second;
            samples = std::max(samples, told == nullptr ? 0 : told->samples);
        }
        const std::int64_t others = subtract_saturated(count_of(samples), status_.total_samples);
        return others <= 0 ? ""
                           : fmt::format(
                                 " {} samples belong to other nodes, which read the Dataset now; "
                                 "the warm-up does not fetch those.",
                                 others);
    }

    [[nodiscard]] std::string tell_waits() const {
        constexpr std::size_t kToldMax = 3;
        std::string words;
        std::size_t told = 0;
        for (const WarmupNodeStatus& node : status_.nodes) {
            if (!node.message.empty() && told < kToldMax) {
                ++told;
                words += fmt::format(" Node {}: {}.", node.node, node.message);
            }
        }
        const Condition* fillers =
            find_condition(view_.dataset->status.conditions, std::string{kFillersReady});
        if (fillers != nullptr && fillers->status == ConditionStatus::kFalse) {
            words += " " + fillers->message;
        }
        return words;
    }

    void judge() {
        if (all_in({kWarmupNodeDone})) {
            set(kFits, holds("Fits", "The grants have room for all bytes."));
            finish(kWarmupComplete, "Warmed", tell_progress() + tell_others());
        } else if (!all_in({kWarmupNodeDone, kWarmupNodeFull, kWarmupNodeGone, kWarmupNodeLost})) {
            go_on();
        } else if (!all_in({kWarmupNodeDone, kWarmupNodeFull})) {
            const bool any_gone = std::ranges::any_of(
                status_.nodes,
                [](const WarmupNodeStatus& it) { return it.state == kWarmupNodeGone; });
            finish(
                kWarmupFailed,
                any_gone ? "NodesGone" : "NodesSilent",
                tell_progress() + tell_waits());
        } else if (refused_ > 0 && is_accounted_for()) {
            finish(
                kWarmupFailed,
                "OriginRefused",
                fmt::format("{} {}{}", tell_refused(), tell_progress(), tell_waits()));
        } else {
            judge_full();
        }
    }

    // Whether each sample is on its node or was refused, so that none lacks room.
    [[nodiscard]] bool is_accounted_for() const {
        return std::ranges::all_of(status_.nodes, [](const WarmupNodeStatus& node) {
            return add_saturated(node.samples_warmed, node.samples_refused) >= node.total_samples;
        });
    }

    [[nodiscard]] std::string tell_refused() const {
        return fmt::format(
            "{} samples are missing or changed at the origin, or too large to cache.", refused_);
    }

    void judge_full() {
        if (view_.room_may_come) {
            set(kFits, unknown("RoomMayCome", "Waits for sidecars' reports, or for sweeps."));
            go_on();
            return;
        }
        const std::string missing =
            print(subtract_saturated(status_.total_bytes, status_.bytes_warmed));
        set(kFits,
            fails(
                "GrantFull",
                fmt::format(
                    "{} do not fit the grants: the namespace's CacheQuota or the nodes have no "
                    "room for them.{}",
                    missing,
                    tell_waits())));
        const Condition* fits = find_condition(status_.conditions, kFits);
        if (now_.wall - fits->last_transition < kWarmupFullFor) {
            go_on();
            return;
        }
        finish(
            kWarmupComplete,
            "GrantFull",
            fmt::format(
                "{} {} do not fit the grants.{}{}",
                tell_progress(),
                missing,
                refused_ > 0 ? " " + tell_refused() : "",
                tell_others()));
    }

    void go_on() {
        const bool runs = std::ranges::any_of(
            status_.nodes, [](const WarmupNodeStatus& node) { return node.total_samples > 0; });
        state_ = runs ? "Running" : "Pending";
        if (all_in({kWarmupNodeDone, kWarmupNodeFull})) {
            set(kRunning, holds("GrantFull", "Waits in case the grants grow." + tell_waits()));
        } else {
            set(kFits, unknown("Filling", "Not all bytes are on the nodes yet."));
            set(kRunning,
                holds_if(runs, runs ? "Filling" : "Starting", tell_progress() + tell_waits()));
        }
        set(kWarmupComplete.data(), fails("InProgress", tell_progress()));
    }

    void finish(std::string_view type, std::string reason, const std::string& message) {
        state_ = type;
        status_.completion_time = std::chrono::floor<std::chrono::seconds>(now_.wall);
        set(kRunning, fails("Finished", "The warm-up has ended."));
        if (type == kWarmupFailed) {
            set(kWarmupComplete.data(), fails(reason, message));
        }
        set(type.data(), holds(std::move(reason), message));
    }

    void print_columns() {
        DatasetWarmupColumns& columns = status_.columns;
        columns.state = state_;
        const bool known = status_.total_bytes > 0;
        columns.warmed =
            known ? fmt::format("{}/{}", print(status_.bytes_warmed), print(status_.total_bytes))
                  : "";
        columns.percentage =
            known ? fmt::format(
                        "{}%", multiply_saturated(status_.bytes_warmed, 100) / status_.total_bytes)
                  : "";
        const auto done = std::ranges::count_if(status_.nodes, [](const WarmupNodeStatus& node) {
            return node.state == kWarmupNodeDone;
        });
        columns.nodes =
            status_.nodes.empty() ? "" : fmt::format("{}/{}", done, status_.nodes.size());
    }

    const WarmupView& view_;
    const Moment& now_;
    DatasetWarmupStatus status_;
    std::string state_;
    std::int64_t refused_ = 0;
};

}  // namespace

DatasetWarmupStatus summarize_warmup(const WarmupView& view, const Moment& now) {
    return Summary{view, now}.take();
}

}  // namespace stoker::control

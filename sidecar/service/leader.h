#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/runtime/event_loop.h"
#include "common/runtime/worker_pool.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/holdings.h"
#include "sidecar/core/revision_gate.h"
#include "sidecar/core/silence_watch.h"
#include "sidecar/core/step_aside.h"
#include "sidecar/device/device.h"
#include "sidecar/engine/dataset_engine.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/preparation.h"
#include "sidecar/service/session.h"
#include "sidecar/store/node_store.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// What all datasets of one sidecar share. Everything outlives the datasets.
struct SidecarParts {
    EventLoop& loop;
    WorkerPool& io;  // stores, checksums, plans
    Device& device;
    ConnectionIds& connection_ids;
    std::string boot_id;
    std::string job_uid;           // empty: none
    std::string attempt_uid;       // of its Job that runs now
    std::uint64_t sidecar_id = 0;  // of this process, random
    bool operator_grants = false;
};

// Before the operator's first word nothing new is kept, and nothing that is there is dropped: an
// earlier job may have left it, and the grant to come may cover it. Without an operator the
// configured grant stands for ever.
EngineGrant first_grant(const SidecarParts& parts, const DatasetConfig& config);

enum class LeaderState : std::uint8_t { kPreparing, kServing, kFailed };

// What a leader reports, and what only metrics and the status page show. Its error: why preparing
// failed, or what went wrong last.
struct LeaderStatus : control::DatasetReport {
    LeaderState state = LeaderState::kPreparing;
    ByteAccount bytes;
    EngineCounters counters;
    StoreUsage usage;
    RecoveryReport recovery;
    bool aside = false;  // our disk is slower than the origin; `error` says it
};

// Leads one node directory: makes or finds the manifest, opens the store, runs the engine and
// carries out what it decides. The caller holds the directory's lock as long as this lives. Belongs
// to the loop's thread; the origin's threads and the pool only post to it.
//
// Failures to prepare are answered to the sessions that wait, and tried again with back-off for
// ever. Our own trainers' sessions wait as long as the gate says so; those of other pods wait only
// while we may still list again.
class Leader final : public SessionHandler {
public:
    struct Callbacks {
        // The origin refuses our credentials for the listing, or for one read after the other; may
        // be told again.
        std::function<void(const Error&)> forbidden;
        std::function<void()> changed;  // the gate does not let our trainers read what we listed
    };

    // `keep_revision`: clients are at work on the manifest that is there, so that it stays current.
    // `gate` and `listener` outlive us; the latter hears of our own pod's sessions.
    Leader(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        RevisionGate& gate,
        ReadingListener& listener,
        Callbacks callbacks,
        bool keep_revision);
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    // Stops preparing. What the origin and the pool still do for us must have ended before (Sidecar
    // sees to it).
    ~Leader() override;

    void attach(Session& session) override;
    void on_frame(Session& session, Frame frame) override;
    void detach(Session& session) override;

    // The operator's word; without one the configuration's.
    void set_grant(EngineGrant grant);
    void set_weights(JobWeights weights);

    // The gate knows another pin.
    void on_pin();

    // The listing that is served, or will be once the gate lets it. nullptr: nothing is listed yet.
    [[nodiscard]] const domain::ManifestView* manifest() const;

    // Marks of manifest(), where its revision is pinned; else empty.
    [[nodiscard]] const domain::ManifestMarks& marks() const { return marks_; }

    [[nodiscard]] LeaderState state() const { return state_; }

    [[nodiscard]] LeaderStatus status() const;

    // Samples of the revision that is served; 0: none yet.
    [[nodiscard]] std::uint64_t sample_count() const {
        return state_ == LeaderState::kServing ? manifest_->view().sample_count() : 0;
    }

    // Ends preparing, which may be in the middle of a listing.
    void stop_preparing() { preparing_ = {}; }

    // Ends every session and starts nothing more. `on_idle`: the origin and the pool do nothing for
    // us any more, so that we may be destroyed.
    void retire(std::function<void()> on_idle);

    // Seals and syncs the store. The last call.
    Status close_store();

private:
    void prepare();
    void on_prepared(Result<Preparation> prepared);
    void settle_revision();
    void list_again();
    void admit(Session& session);
    void tell_listing();
    void watch_listing();
    void begin_serving(Preparation prepared);
    void welcome(Session& session);
    void upkeep();
    void watch_disk();
    void clean(const StoreUsage& usage);
    [[nodiscard]] EngineGrant effective_grant() const;

    void on_fetch(Session& session, std::uint64_t request_id, const local::Fetch& fetch);
    void on_consumed(Session& session, std::uint64_t request_id, const local::Consumed& consumed);
    void on_plan(Session& session, Frame frame);
    void read_plan_of(const Session& session, std::function<void()> read);
    void end_guest_plan(Party party);
    void finish_plan(ConnectionId connection, std::uint64_t request_id, Result<StreamPlan> plan);
    void on_sampling(Session& session, std::uint64_t request_id, const local::Message& message);
    void on_begin(
        Session& session,
        std::uint64_t request_id,
        const local::Begin& begin,
        const UniqueFd& memfd);
    void on_draw(Session& session, std::uint64_t request_id, const local::Draw& draw);
    void stop_drawing(ConnectionId connection);
    [[nodiscard]] std::optional<Error> check_ids(const std::vector<std::uint64_t>& ids) const;

    void apply(Effects effects);
    void start_fetch(const StartFetch& fetch);
    void on_origin_bytes(const StartFetch& fetch, TimePoint started_at, Result<OriginBytes> bytes);
    void on_append_done(const StartFetch& fetch, const Status& status, const FetchTimes& times);
    void start_verify(SampleIndex sample);
    void reply(const FetchReply& reply);
    void schedule_tick();

    // From any thread: runs the task on the loop unless we are gone by then.
    void post(std::function<void()> task);

    // `work` on the pool, then `then` on the loop.
    void on_pool(std::function<void()> work, std::function<void()> then);
    void end_work();
    void note_forbidden(const Error& error);
    void note_changed(SampleIndex sample, const Error& error);
    [[nodiscard]] bool take_plan_room(const Session& session, std::uint64_t positions);
    void give_plan_room(StreamId stream);
    [[nodiscard]] bool take_stream(const Session& session);
    [[nodiscard]] bool is_last_of_stream(const Session& session) const;
    [[nodiscard]] std::optional<Error> check_fetch(
        const Session& session, const local::Fetch& fetch) const;

    SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    RevisionGate& gate_;
    ReadingListener& listener_;
    Callbacks callbacks_;
    bool keep_revision_;
    EngineGrant grant_;
    JobWeights weights_;
    std::map<ConnectionId, Session*> sessions_;  // attached, in whatever state
    std::set<ConnectionId> waiting_;             // for the manifest, or for the gate
    std::set<ConnectionId> welcomed_;            // known to the engine
    std::map<ConnectionId, StreamId> draws_by_;  // those that draw under a contract

    struct PlanRoom {
        std::uint64_t sidecar = 0;
        std::uint64_t positions = 0;
        bool guest = false;
    };

    // What clients may hold whatever they say, by sidecar. That of guests is apart, by door.
    struct Rooms {
        Holdings plan{0, 0};     // positions of plans
        Holdings pending{0, 0};  // samples of fetches without an answer
    };

    [[nodiscard]] Rooms& rooms(bool guest) { return guest ? guest_rooms_ : own_rooms_; }

    Rooms own_rooms_;
    Rooms guest_rooms_;
    std::map<StreamId, PlanRoom> plans_;
    std::map<StreamId, Party> guest_streams_;                         // that have or may have plans
    std::map<Party, std::deque<std::function<void()>>> guest_plans_;  // to be read; the first is
    std::map<ConnectionId, std::uint64_t> pending_samples_;
    std::shared_ptr<std::atomic<std::uint64_t>> objects_listed_;
    LeaderState state_ = LeaderState::kPreparing;
    Error last_error_;
    Duration retry_delay_;
    std::optional<Preparation> prepared_;  // waits for the gate
    bool list_again_ = false;
    domain::ManifestMarks marks_;
    std::string changed_key_;
    std::unique_ptr<MappedManifest> manifest_;
    std::unique_ptr<NodeStore> store_;
    std::unique_ptr<DatasetEngine> engine_;
    Bytes resident_cap_ = Bytes::unlimited();  // what the disk allows, whatever the grant says
    Bytes kept_free_{};                        // of the disk, for that
    bool compacting_ = false;
    StepAside step_aside_;
    SilenceWatch listing_watch_;
    Bytes compacted_at_{};  // StoreUsage::written_bytes when the cleaner ran last
    std::size_t busy_ = 0;  // fetches and tasks of the pool under way
    bool retiring_ = false;
    std::function<void()> on_idle_;
    std::uint32_t forbidden_in_row_ = 0;
    TimerId prepare_timer_{};
    TimerId gate_timer_{};
    TimerId listing_timer_{};
    TimerId tick_timer_{};
    TimerId upkeep_timer_{};
    std::optional<TimePoint> tick_at_;
    std::uint64_t origin_requests_ = 0;
    Bytes origin_bytes_{};
    Duration origin_request_time_{};
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // expires with us, for posted tasks
    std::jthread preparing_;  // joined before anything that it uses goes away
};

}  // namespace stoker::sidecar

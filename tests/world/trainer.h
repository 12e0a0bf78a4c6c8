#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/world/node_view.h"
#include "tests/world/origin_site.h"
#include "tests/world/trainer_link.h"

namespace stoker::world {

struct TrainerSettings {
    std::string name;
    std::string pod;
    std::string socket_path;
    std::string data_folder;
    std::string contract;  // "exact", "windowed", "importance", "replicate"
    std::string job;
    std::uint64_t seed = 0;  // of the order
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
    std::uint32_t batch = 8;
    Duration compute{};        // per batch
    bool looks_ahead = false;  // sends the beginning of the next epoch
    std::uint64_t epochs = 0;  // the trainer ends after so many; 0: when may_end()

    [[nodiscard]] bool reports_losses() const {
        return contract == "importance" || contract == "replicate";
    }
};

// A trainer's checkpoint. The world keeps it when the trainer is killed.
struct Progress {
    std::uint64_t epoch = 0;
    std::map<std::uint64_t, std::uint32_t> counts;  // of this epoch
    std::uint64_t drawn = 0;                        // samples of this epoch
    std::vector<std::byte> snapshot;  // the sampler's state, under contracts with losses
    bool is_done = false;
};

struct TrainerCallbacks {
    std::function<bool()> may_end;     // whether the trainer ends after this epoch
    std::function<bool()> may_begin;   // whether the other ranks have ended the last epoch
    std::function<bool()> is_keyless;  // without an own key: only a sidecar can serve the trainer
    std::function<void()> attached;    // it has its sidecar's Welcome
    std::function<void(bool had_session)> lost;  // its sidecar has hung up, or refused the Hello
    std::function<void()> unreadable;            // a fetched sample is ready, and cannot be read
    // Its sidecar answered a request with an error, or reported errors of the origin for these
    // samples of a fetch.
    std::function<void(const std::string& what, const std::vector<std::uint64_t>& samples)> refused;
    // Its sidecar left samples of a fetch to the trainer's own reads of the origin.
    std::function<void(const std::string& what)> no_room;
};

// The trainer of a pod: reads epoch after epoch from the node directory, its sidecar or the origin,
// as client/src does. Not thread-safe.
class Trainer final : public Program {
public:
    // The references must outlive it.
    Trainer(
        Schedule& schedule,
        const TrainerSettings& settings,
        test::FaultDevice& disk,
        OriginSite& site,
        Oracle& oracle,
        Progress& progress,
        TrainerCallbacks callbacks);

    // How long the trainer has waited for its sidecar's answer.
    [[nodiscard]] Duration waits_for() const { return link_.waits_for(); }

    // When the trainer last sent its sidecar a Hello, or tried to.
    [[nodiscard]] TimePoint greeted_at() const { return link_.connected_at(); }

    // Record bytes of the trainer's batch: it holds no other samples on the node.
    [[nodiscard]] Bytes batch_bytes() const;

private:
    struct Batch {
        std::vector<std::uint64_t> ids;
        std::vector<std::uint64_t> missing;
        std::vector<std::uint64_t> from_origin;
        int rounds = 0;
        bool ends_epoch = false;
    };

    void attach_first(TimePoint give_up);
    bool on_welcome(const local::Welcome& welcome);
    void send_plan(const std::function<void()>& then);
    void note_error(const char* request, const std::optional<local::Message>& answer);
    void begin_epoch();
    void ask_snapshot();
    void start_epoch();
    void next_batch();
    void draw(int tries);
    void begin_on_sidecar(int tries);
    void draw_alone();
    void take(std::vector<std::uint64_t> ids, bool ends_epoch);
    void fetch_missing();
    void on_fetched(const local::Fetched& fetched);
    void note_elsewhere(
        const local::Fetched& fetched,
        const std::vector<std::uint64_t>& elsewhere,
        const std::vector<std::uint64_t>& failed);
    void read_at_origin();
    void await_sidecar();
    void report_losses();
    void on_batch();
    void end_epoch();
    bool read_node(std::uint64_t id, const char* source);
    [[nodiscard]] std::vector<std::uint64_t> share(std::uint64_t epoch) const;

    Schedule& schedule_;
    TrainerSettings settings_;
    test::FaultDevice& disk_;
    OriginSite& site_;
    Oracle& oracle_;
    Progress& progress_;
    TrainerCallbacks callbacks_;
    std::unique_ptr<NodeView> node_;
    TrainerLink link_;
    std::vector<std::uint64_t> order_;  // of the epoch under exact
    std::uint64_t begun_on_ = 0;        // link's attached_count() at which the epoch was begun
    std::uint64_t planned_on_ = 0;      // attached_count() when the plan was sent
    Batch batch_;
    LoopTimer timer_;
};

}  // namespace stoker::world

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/link_session.h"
#include "tests/world/control_stream.h"

namespace stoker::world {

class ControlSidecar;

// A dataset's directory on one node, with the bytes that its leader holds.
struct NodeDirectory {
    std::string ns;  // of the Dataset
    Bytes resident{};
    Bytes total{};  // of the dataset
    ControlSidecar* leader = nullptr;
    TimePoint led_since{};
    TimePoint changed_at{};        // when `resident` last changed
    std::uint64_t revision = 0;    // listed by its leader; 0: none yet
    std::string listed_for;        // uid of the batch/v1 Job whose pods keep this revision
    std::uint64_t generation = 0;  // of its last leader
    std::map<std::uint64_t, TimePoint> led_until{};  // by generation: when it last led
};

// A node of the world, with its disk.
struct ControlNode {
    std::string name;
    bool is_gone = false;                              // power and network: nothing on it runs
    bool is_removed = false;                           // its object has been deleted, too
    std::map<std::string, NodeDirectory> directories;  // by dataset uid
};

// The world, as a sidecar uses it.
struct SidecarWorld {
    // Opens a stream to the leading operator replica; nullptr: no replica answered.
    std::function<std::shared_ptr<ControlStream>(ControlSidecar& sidecar)> dial;
    // Share of reports that are sent twice.
    std::function<double()> doubled;
    // The revision that a listing of the dataset's origin finds now.
    std::function<std::uint64_t(const std::string& uid)> revision_of;
    // Called when a sidecar gets a group, or a certificate (`uris`: its URIs).
    std::function<void(ControlSidecar& sidecar, const control::PeerGroup& group)> on_group;
    std::function<void(ControlSidecar& sidecar, const std::string& uris)> on_certificate;
};

// One sidecar: the product's LinkSession, and a model of the engine. The model fills a dataset up
// to its grant while the grant is valid; after a smaller grant it evicts the rest, at once or late.
// A sidecar that begins to lead lists the origin, unless pods of the same Job have listed it. Not
// thread-safe. The destructor is kill -9.
class ControlSidecar final : public StreamUser {
public:
    struct Dataset {
        std::string uid;
        std::string name;
        bool guest = false;
        bool pinned = false;
        bool peers = false;
        std::uint64_t pin = 0;               // revision; 0: no pin yet
        Bytes granted = Bytes::unlimited();  // unlimited: no grant since the start
        TimePoint granted_until{};
        std::uint64_t origin_bytes = 0;
        control::PeerGroup group{};  // the last one
        bool filling = false;        // the last grant orders to fetch without a reader
    };

    ControlSidecar(
        Schedule& schedule,
        sidecar::SidecarConfig config,
        ControlNode& node,
        SidecarWorld world,
        std::uint64_t seed);
    ~ControlSidecar() override;
    ControlSidecar(const ControlSidecar&) = delete;
    ControlSidecar& operator=(const ControlSidecar&) = delete;

    void on_orders(const control::v1::OperatorMessage& message) override;
    void on_stream_end() override;

    [[nodiscard]] const sidecar::JobConfig& job() const { return config_.job; }

    [[nodiscard]] const std::vector<Dataset>& datasets() const { return datasets_; }

    // Bytes up to which the sidecar may fill the dataset, now or once a grant on its way arrives.
    [[nodiscard]] Bytes granted(const std::string& uid) const;

    // Bytes of the last grant, which reports contain even after it has expired; zero: no grant yet.
    [[nodiscard]] Bytes last_grant(const std::string& uid) const;

    [[nodiscard]] ControlNode& node() { return node_; }

    [[nodiscard]] ControlStream* stream() { return stream_.get(); }

    [[nodiscard]] bool is_attached() const { return link_.is_attached(); }

    // The sidecar leads the directory and has not counted its bytes yet.
    [[nodiscard]] bool is_opening() const;

    // Evicts nothing before `until`.
    void resist(TimePoint until) { resists_until_ = until; }

    [[nodiscard]] TimePoint resists_until() const { return resists_until_; }

    // Ends as after SIGTERM: a last report, and a half-close. Destroy it next.
    void shut_down();

    // The sidecar's node is lost, so the operator learns late that the stream has ended.
    void lose() { notice_ = std::chrono::seconds{35}; }

private:
    void in(Duration delay, void (ControlSidecar::*step)());
    void dial();
    void send_report();
    void work();
    void open(const Dataset& dataset, NodeDirectory& directory);
    void fill(Dataset& dataset);
    [[nodiscard]] bool leads(const std::string& uid) const;
    sidecar::LinkReport report();
    control::DatasetReport report(const Dataset& dataset);
    [[nodiscard]] control::FillProgress progress(
        const Dataset& dataset, const NodeDirectory& directory) const;
    sidecar::LinkCallbacks callbacks();

    Schedule& schedule_;
    sidecar::SidecarConfig config_;
    ControlNode& node_;
    SidecarWorld world_;
    std::vector<Dataset> datasets_;
    sidecar::LinkSession link_;
    std::shared_ptr<ControlStream> stream_;
    std::uint64_t dials_ = 0;
    TimePoint opens_at_{};  // until then the sidecar counts the bytes on its disk
    TimePoint resists_until_{};
    TimePoint began_;
    Duration notice_ = std::chrono::milliseconds{200};
    double samples_per_second_;
    double wait_share_;
    std::shared_ptr<ControlSidecar*> self_;  // expires with this object
};

}  // namespace stoker::world

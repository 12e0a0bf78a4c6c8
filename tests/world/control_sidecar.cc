#include "tests/world/control_sidecar.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/base/check.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kWorkEvery = seconds{1};
constexpr std::uint64_t kSampleBytes = 1 << 20;

sidecar::LinkOptions link_options(std::uint64_t seed) {
    sidecar::LinkOptions options;
    options.seed = seed;
    return options;
}

}  // namespace

ControlSidecar::ControlSidecar(
    Schedule& schedule,
    sidecar::SidecarConfig config,
    ControlNode& node,
    SidecarWorld world,
    std::uint64_t seed)
    : schedule_(schedule),
      config_(std::move(config)),
      node_(node),
      world_(std::move(world)),
      link_(config_.job, config_.datasets, callbacks(), link_options(seed)),
      began_(schedule.now()),
      samples_per_second_(10 + 500 * schedule.luck().unit()),
      wait_share_(schedule.luck().unit()),
      self_(std::make_shared<ControlSidecar*>(this)) {
    for (const sidecar::DatasetConfig& dataset : config_.datasets) {
        datasets_.push_back(
            {dataset.uid, dataset.name, dataset.guest, dataset.pinned, dataset.peers});
    }
    in(schedule_.draw_scale(milliseconds{1}, seconds{1}), &ControlSidecar::dial);
    in(kWorkEvery, &ControlSidecar::work);
}

ControlSidecar::~ControlSidecar() {
    for (auto& [uid, directory] : node_.directories) {
        if (directory.leader == this) {
            directory.leader = nullptr;
        }
    }
    if (stream_) {
        stream_->drop_sidecar(schedule_.draw_scale(milliseconds{1}, notice_));
    }
}

sidecar::LinkCallbacks ControlSidecar::callbacks() {
    sidecar::LinkCallbacks callbacks;
    callbacks.report = [this] { return report(); };
    callbacks.grant = [this](const control::Grant& grant) {
        for (Dataset& dataset : datasets_) {
            if (dataset.uid == grant.dataset_uid && leads(dataset.uid)) {
                dataset.granted = grant.resident_bytes;
                dataset.granted_until = schedule_.now() + seconds{grant.valid_seconds};
                dataset.filling = grant.fill.has_value();
            }
        }
    };
    callbacks.pin = [this](const control::RevisionPin& pin) {
        for (Dataset& dataset : datasets_) {
            if (dataset.uid == pin.dataset_uid) {
                dataset.pin = pin.revision.value();
            }
        }
    };
    callbacks.peers = [this](const control::PeerGroup& group) {
        for (Dataset& dataset : datasets_) {
            if (dataset.uid == group.dataset_uid) {
                world_.on_group(*this, group);
                dataset.group = group;
            }
        }
    };
    callbacks.peer_request = [this] { return "request of " + config_.job.pod; };
    callbacks.peer_certificate = [this](const control::PeerCertificate& certificate) {
        world_.on_certificate(*this, certificate.chain);
    };
    return callbacks;
}

void ControlSidecar::in(Duration delay, void (ControlSidecar::*step)()) {
    schedule_.run_in(delay, [weak = std::weak_ptr{self_}, step, dial = dials_] {
        const auto self = weak.lock();
        // Drops a step of an earlier connection to the operator, unless it is work().
        if (self && ((*self)->dials_ == dial || step == &ControlSidecar::work)) {
            (*self)->schedule_.set_speaker((*self)->config_.job.pod);
            ((**self).*step)();
        }
    });
}

void ControlSidecar::dial() {
    ++dials_;
    stream_ = world_.dial(*this);
    if (!stream_) {
        in(link_.on_end(true), &ControlSidecar::dial);
        return;
    }
    link_.begin();
    stream_->send(link_.hello());
    send_report();
}

void ControlSidecar::on_orders(const control::v1::OperatorMessage& message) {
    link_.on_message(message, schedule_.now());
}

void ControlSidecar::on_stream_end() {
    stream_.reset();
    ++dials_;
    in(link_.on_end(false), &ControlSidecar::dial);
}

void ControlSidecar::send_report() {
    if (!stream_->can_send()) {
        in(milliseconds{100}, &ControlSidecar::send_report);
        return;
    }
    const sidecar::LinkSession::Outgoing next = link_.next_message(schedule_.now());
    stream_->send(next.message);
    if (schedule_.draw_chance(world_.doubled())) {
        stream_->send(next.message);
    }
    in(next.pause, &ControlSidecar::send_report);
}

void ControlSidecar::shut_down() {
    if (stream_ && stream_->can_send()) {
        stream_->send(link_.next_report().message);
        stream_->end_sending();
        stream_.reset();
    }
}

Bytes ControlSidecar::granted(const std::string& uid) const {
    Bytes most{};
    for (const Dataset& dataset : datasets_) {
        const bool is_valid =
            !dataset.granted.is_unlimited() && schedule_.now() < dataset.granted_until;
        if (dataset.uid == uid && is_valid) {
            most = dataset.granted;
        }
    }
    if (stream_ == nullptr) {
        return most;
    }
    for (const auto& orders : stream_->orders_in_flight()) {
        for (const control::Grant& grant : control::decode(orders).grants) {
            most = grant.dataset_uid == uid ? std::max(most, grant.resident_bytes) : most;
        }
    }
    return most;
}

Bytes ControlSidecar::last_grant(const std::string& uid) const {
    const auto found = std::ranges::find(datasets_, uid, &Dataset::uid);
    return found == datasets_.end() || found->granted.is_unlimited() ? Bytes{} : found->granted;
}

void ControlSidecar::work() {
    for (Dataset& dataset : datasets_) {
        fill(dataset);
    }
    in(kWorkEvery, &ControlSidecar::work);
}

bool ControlSidecar::is_opening() const {
    return schedule_.now() < opens_at_;
}

void ControlSidecar::open(const Dataset& dataset, NodeDirectory& directory) {
    directory.leader = this;
    directory.led_since = schedule_.now();
    opens_at_ = schedule_.now() + schedule_.draw_scale(milliseconds{10}, seconds{20});
    directory.generation = static_cast<std::uint64_t>(schedule_.now().time_since_epoch().count());
    directory.led_until[directory.generation] = schedule_.now();
    const std::string& job = config_.job.attempt_uid;
    if (directory.revision == 0 || job.empty() || directory.listed_for != job) {
        directory.revision = world_.revision_of(dataset.uid);
        directory.listed_for = job;
    }
}

bool ControlSidecar::leads(const std::string& uid) const {
    const auto found = node_.directories.find(uid);
    return found != node_.directories.end() && found->second.leader == this;
}

// Guests never lead.
void ControlSidecar::fill(Dataset& dataset) {
    if (dataset.guest) {
        return;
    }
    NodeDirectory& directory = node_.directories[dataset.uid];
    if (directory.leader == nullptr) {
        open(dataset, directory);
    }
    if (directory.leader != this || is_opening()) {
        return;
    }
    if (directory.resident > dataset.granted) {
        if (schedule_.now() >= resists_until_) {
            directory.resident = dataset.granted;
            directory.changed_at = schedule_.now();
        }
        return;
    }
    if (!dataset.granted.is_unlimited() && schedule_.now() < dataset.granted_until) {
        const Bytes room = std::min(dataset.granted, directory.total) - directory.resident;
        const Bytes fetched = std::min(room, Bytes{schedule_.luck().below(gib(8).count())});
        directory.resident += fetched;
        directory.changed_at = fetched > Bytes{} ? schedule_.now() : directory.changed_at;
        dataset.origin_bytes += fetched.count();
    }
}

// The nodes of a group own equal parts.
control::FillProgress ControlSidecar::progress(
    const Dataset& dataset, const NodeDirectory& directory) const {
    const std::uint64_t owners = std::max<std::uint64_t>(dataset.group.members.size(), 1);
    const Bytes own{directory.total.count() / owners};
    const Bytes stored = std::min(directory.resident, own);
    control::FillProgress progress;
    progress.samples = own.count() / kSampleBytes;
    progress.bytes = own;
    progress.stored_samples = stored.count() / kSampleBytes;
    progress.stored_bytes = stored;
    progress.over = directory.resident >= std::min(dataset.granted, own);
    progress.shut = schedule_.now() >= dataset.granted_until;
    return progress;
}

control::DatasetReport ControlSidecar::report(const Dataset& dataset) {
    const auto found = node_.directories.find(dataset.uid);
    control::DatasetReport report;
    report.name = dataset.name;
    report.dataset_uid = dataset.uid;
    report.leader = leads(dataset.uid);
    const bool counted = found != node_.directories.end() && found->second.revision != 0 &&
                         (!report.leader || !is_opening());
    report.manifest_state =
        counted ? control::ManifestState::kReady : control::ManifestState::kListing;
    report.granted_bytes = dataset.granted;
    if (report.leader && dataset.peers) {
        report.peer_address = config_.peers.address;
        report.peer_generation = found->second.generation;
    }
    if (counted) {
        report.objects_listed = report.samples = found->second.total.count() / kSampleBytes;
        report.total_bytes = found->second.total;
        report.revision = fmt::format("{:016x}", found->second.revision);
        report.read_revision = report.revision;
        if (dataset.pin != 0 && dataset.pin != found->second.revision) {
            report.origin_change = control::OriginChange{};
        }
        if (report.leader) {
            report.resident_bytes = found->second.resident;
            report.resident_samples = found->second.resident.count() / kSampleBytes;
            if (dataset.filling) {
                report.fill = progress(dataset, found->second);
            }
        }
    }
    report.origin_bytes_read = Bytes{dataset.origin_bytes};
    return report;
}

sidecar::LinkReport ControlSidecar::report() {
    sidecar::LinkReport report;
    const double run = seconds_of(schedule_.now() - began_);
    for (const Dataset& dataset : datasets_) {
        report.datasets.push_back(this->report(dataset));
        report.awaits_pin = report.awaits_pin || (dataset.pinned && dataset.pin == 0);
    }
    report.trainer.samples = static_cast<std::uint64_t>(run * samples_per_second_);
    report.trainer.bytes = Bytes{report.trainer.samples * kSampleBytes};
    report.trainer.steps = report.trainer.samples / 32;
    report.trainer.wait = milliseconds{static_cast<std::int64_t>(1000 * run * wait_share_)};
    report.trainer.compute =
        milliseconds{static_cast<std::int64_t>(1000 * run * (1 - wait_share_))};
    return report;
}

}  // namespace stoker::world

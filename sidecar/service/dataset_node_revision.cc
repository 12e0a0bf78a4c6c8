// The part of DatasetNode that keeps our trainers to the revision of their attempt.
#include <chrono>

#include "common/domain/manifest_marks.h"
#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/service/dataset_node.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kAskGateAgain = std::chrono::seconds{1};

}  // namespace

void DatasetNode::set_pin(const control::RevisionPin& pin) {
    const bool is_news = !pin_ || pin_->revision != pin.revision;
    pin_ = pin;
    gate_.pin(pin.revision);
    if (is_news) {
        log::info(
            "the revision of the attempt",
            {{"dataset", config_.name}, {"revision", domain::to_string(pin.revision)}});
    }
    if (leader_ != nullptr) {
        leader_->on_pin();
    }
    admit_relays();
    judge_pin();
}

std::optional<domain::RevisionId> DatasetNode::read_revision() const {
    for (const auto& [id, relay] : relays_) {
        if (const auto revision = relay->revision()) {
            return revision;
        }
    }
    const auto* manifest = leader_ == nullptr ? nullptr : leader_->manifest();
    return manifest == nullptr ? std::nullopt : std::optional{manifest->revision()};
}

// The client hears that we are at work, and is admitted when the gate opens.
void DatasetNode::admit(Relay& relay, domain::RevisionId revision) {
    if (gate_.judge(revision, false, parts_.loop.now()) == RevisionGate::Verdict::kGo) {
        relay.admit();
        return;
    }
    relay.session().send_listing(0);
    judge_pin();
    gate_timer_.run_in(kAskGateAgain, [this] { admit_relays(); });
}

// Trainers that have begun without a pin are judged, too.
void DatasetNode::judge_pin() {
    const auto revision = read_revision();
    if (!pin_ || !revision) {
        return;
    }
    gate_.judge(*revision, false, parts_.loop.now());
    if (!gate_.has_changed()) {
        origin_change_.reset();
    } else if (!origin_change_ || (origin_change_->keys == 0 && !pin_->marks.digests.empty())) {
        origin_change_ = find_change();
        log::error(
            "the origin changed: another rank reads another revision",
            {{"dataset", config_.name},
             {"revision", domain::to_string(*revision)},
             {"pinned", domain::to_string(pin_->revision)},
             {"key", origin_change_->key}});
    }
}

control::OriginChange DatasetNode::find_change() const {
    const auto find = [this](const domain::ManifestView& ours) -> control::OriginChange {
        const auto range = domain::find_difference(ours, pin_->marks);
        if (!range) {
            return {};
        }
        const bool has_key = range->first < ours.sample_count();
        return {
            has_key ? std::string{ours.sample(domain::SampleId{range->first}).key} : "",
            range->count};
    };
    if (leader_ != nullptr && leader_->manifest() != nullptr) {
        return find(*leader_->manifest());
    }
    const auto mapped = MappedManifest::open(
        parts_.device, domain::data_folder(config_.directory), *read_revision());
    return mapped ? find(mapped->view()) : control::OriginChange{};
}

}  // namespace stoker::sidecar

#include "tests/support/fake_peers.h"

#include <chrono>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace stoker::testing {

namespace {

control::Validity one_day() {
    const WallTime now = std::chrono::system_clock::now();
    return {now - std::chrono::hours{1}, now + std::chrono::hours{24}};
}

control::KeyPair make_authority() {
    auto pair = control::make_ca("fake operator", one_day());
    STOKER_CHECK(pair.has_value(), "the CA of peers");
    return *std::move(pair);
}

}  // namespace

FakePeers::FakePeers(std::size_t nodes)
    : nodes_(nodes),
      authority_(make_authority()) {}

control::v1::PeerCertificate FakePeers::sign(
    const control::v1::Hello& hello, const control::v1::PeerRequest& request) const {
    std::vector<std::string> uris;
    for (const auto& mount : hello.datasets()) {
        uris.push_back(
            "stoker://namespace/" + hello.namespace_() + "/dataset/" + mount.dataset_uid());
    }
    auto chain = control::certify_peer(authority_, request.request_pem(), uris, one_day());
    STOKER_CHECK(chain.has_value(), chain ? "" : chain.error().message.c_str());
    control::v1::PeerCertificate certificate;
    certificate.set_chain(*std::move(chain));
    certificate.set_trust(authority_.certificate);
    certificate.set_renew_seconds(3600);
    return certificate;
}

bool FakePeers::hear(const std::string& node, const control::v1::Report& report) {
    bool is_news = false;
    for (const auto& dataset : report.datasets()) {
        is_news = hear_dataset(node, dataset) || is_news;
    }
    if (is_news) {
        write_orders();
    }
    return is_news;
}

bool FakePeers::hear_dataset(const std::string& node, const control::v1::DatasetReport& report) {
    Dataset& dataset = datasets_[report.dataset_uid()];
    bool is_news = false;
    if (dataset.pinned.empty() && !report.read_revision().empty()) {
        dataset.pinned = report.read_revision();
        dataset.marks = report.marks();
        is_news = true;
    }
    if (!report.leader() || report.peer_address().empty()) {
        return is_news;
    }
    control::v1::PeerMember& member = dataset.members[node];
    if (member.generation() >= report.peer_generation()) {
        return is_news;
    }
    member.set_node(node);
    member.set_address(report.peer_address());
    member.set_generation(report.peer_generation());
    if (dataset.version == 0 && dataset.members.size() < nodes_) {
        return is_news;
    }
    ++dataset.version;
    return true;
}

bool FakePeers::forget(const std::string& node) {
    bool is_news = false;
    for (auto& [uid, dataset] : datasets_) {
        const bool was_member = dataset.members.erase(node) > 0 && dataset.version > 0;
        dataset.version += was_member ? 1 : 0;
        is_news = is_news || was_member;
    }
    if (is_news) {
        write_orders();
    }
    return is_news;
}

void FakePeers::write_orders() {
    orders_.Clear();
    for (const auto& [uid, dataset] : datasets_) {
        if (!dataset.pinned.empty()) {
            control::v1::RevisionPin& pin = *orders_.add_pins();
            pin.set_dataset_uid(uid);
            pin.set_revision(dataset.pinned);
            *pin.mutable_marks() = dataset.marks;
        }
        if (dataset.version == 0) {
            continue;
        }
        control::v1::PeerGroup& group = *orders_.add_peer_groups();
        group.set_dataset_uid(uid);
        group.set_version(dataset.version);
        for (const auto& [node, member] : dataset.members) {
            *group.add_members() = member;
        }
    }
}

}  // namespace stoker::testing

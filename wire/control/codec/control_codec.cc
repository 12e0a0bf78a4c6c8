#include "wire/control/codec/control_codec.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <type_traits>

#include "common/domain/parse_revision.h"
#include "wire/control/codec/wire_fields.h"

namespace stoker::control {

namespace {

// Numbers, flags and texts are sent without a conversion.
template <class T>
const T& to_wire(const T& value) {
    return value;
}

std::uint64_t to_wire(Bytes value) {
    return value.count();
}

std::uint64_t to_wire(Duration value) {
    return static_cast<std::uint64_t>(value.count());
}

v1::ManifestState to_wire(ManifestState value) {
    return static_cast<v1::ManifestState>(value);  // the numbers are the same
}

template <class T>
void from_wire(const T& wire, T& value) {
    value = wire;
}

void from_wire(std::uint64_t wire, Bytes& value) {
    value = Bytes{wire};
}

void from_wire(std::uint64_t wire, Duration& value) {
    value = Duration{static_cast<Duration::rep>(wire)};
}

// A newer sidecar may send states that this operator does not know.
void from_wire(v1::ManifestState wire, ManifestState& value) {
    const bool is_known = wire >= 0 && wire <= v1::MANIFEST_STATE_FAILED;
    value = is_known ? static_cast<ManifestState>(wire) : ManifestState::kUnknown;
}

// Sets a field of a protobuf message: numbers have a setter, texts a mutable pointer.
template <class Field, class Value, class Message>
void put(const Field& field, const Value& in, Message& out) {
    const auto& value = std::invoke(field.member, in);
    if constexpr (std::is_invocable_v<decltype(field.set), Message&>) {
        *std::invoke(field.set, out) = value;
    } else {
        std::invoke(field.set, out, to_wire(value));
    }
}

// Copies the plain fields that the value's table (wire_fields.h) lists.
template <class Value, class Message>
void encode_fields(const Value& in, Message& out) {
    std::apply([&](const auto&... field) { (put(field, in, out), ...); }, kWireFields<Value>);
}

template <class Value, class Message>
Value decode_fields(const Message& in) {
    Value out;
    std::apply(
        [&](const auto&... field) {
            (from_wire(std::invoke(field.get, in), std::invoke(field.member, out)), ...);
        },
        kWireFields<Value>);
    return out;
}

void encode(const domain::ManifestMarks& in, v1::ManifestMarks& out) {
    encode_fields(in, out);
    out.mutable_digests()->Add(in.digests.begin(), in.digests.end());
}

domain::ManifestMarks decode(const v1::ManifestMarks& in) {
    auto out = decode_fields<domain::ManifestMarks>(in);
    out.digests = {in.digests().begin(), in.digests().end()};
    return out;
}

void encode(const DatasetReport& in, v1::DatasetReport& out) {
    encode_fields(in, out);
    for (const RankSketch& sketch : in.sketches) {
        v1::RankSketch& sent = *out.add_sketches();
        encode_fields(sketch, sent);
        sent.mutable_masses()->Add(sketch.masses.begin(), sketch.masses.end());
    }
    if (in.disk_limit) {
        encode_fields(*in.disk_limit, *out.mutable_disk_limit());
    }
    if (!in.marks.digests.empty()) {
        encode(in.marks, *out.mutable_marks());
    }
    if (in.origin_change) {
        encode_fields(*in.origin_change, *out.mutable_origin_change());
    }
    if (in.fill) {
        encode_fields(*in.fill, *out.mutable_fill());
    }
}

DatasetReport decode(const v1::DatasetReport& in) {
    auto out = decode_fields<DatasetReport>(in);
    for (const v1::RankSketch& sketch : in.sketches()) {
        out.sketches.push_back(decode_fields<RankSketch>(sketch));
        out.sketches.back().masses = {sketch.masses().begin(), sketch.masses().end()};
    }
    if (in.has_disk_limit()) {
        out.disk_limit = decode_fields<DiskLimit>(in.disk_limit());
    }
    out.marks = decode(in.marks());
    if (in.has_origin_change()) {
        out.origin_change = decode_fields<OriginChange>(in.origin_change());
    }
    if (in.has_fill()) {
        out.fill = decode_fields<FillProgress>(in.fill());
    }
    return out;
}

void encode(const Grant& in, v1::Grant& out) {
    encode_fields(in, out);
    for (const JobWeight& weight : in.weights) {
        encode_fields(weight, *out.add_weights());
    }
    if (in.fill) {
        encode_fields(*in.fill, *out.mutable_fill());
    }
}

Grant decode(const v1::Grant& in) {
    auto out = decode_fields<Grant>(in);
    for (const v1::JobWeight& weight : in.weights()) {
        if (std::isfinite(weight.weight()) && weight.weight() >= 0) {
            out.weights.push_back(decode_fields<JobWeight>(weight));
        }
    }
    if (in.has_fill()) {
        out.fill = decode_fields<FillOrder>(in.fill());
    }
    return out;
}

void encode(const RevisionPin& in, v1::RevisionPin& out) {
    out.set_dataset_uid(in.dataset_uid);
    out.set_revision(domain::to_string(in.revision));
    if (!in.marks.digests.empty()) {
        encode(in.marks, *out.mutable_marks());
    }
}

void encode(const KnownReads& in, v1::KnownReads& out) {
    encode_fields(in, out);
    out.set_order(
        in.order == ReadOrder::kStoker ? v1::READ_ORDER_STOKER : v1::READ_ORDER_TORCH_DISTRIBUTED);
    out.mutable_rank_members()->Add(in.rank_members.begin(), in.rank_members.end());
}

// nullopt: an order that this version does not know, a rank without a member, or no rank or epoch.
// Samples are then placed by the hash, as if the operator had not sent them.
std::optional<KnownReads> decode(const v1::KnownReads& in, std::size_t members) {
    const bool is_known =
        in.order() == v1::READ_ORDER_STOKER || in.order() == v1::READ_ORDER_TORCH_DISTRIBUTED;
    const bool is_placed = std::ranges::all_of(
        in.rank_members(), [members](std::uint32_t member) { return member < members; });
    if (!is_known || !is_placed || in.rank_members().empty() || in.epochs() == 0) {
        return std::nullopt;
    }
    auto out = decode_fields<KnownReads>(in);
    out.order =
        in.order() == v1::READ_ORDER_STOKER ? ReadOrder::kStoker : ReadOrder::kTorchDistributed;
    out.rank_members.assign(in.rank_members().begin(), in.rank_members().end());
    return out;
}

void encode(const PeerGroup& in, v1::PeerGroup& out) {
    encode_fields(in, out);
    for (const PeerMember& member : in.members) {
        encode_fields(member, *out.add_members());
    }
    if (in.reads) {
        encode(*in.reads, *out.mutable_reads());
    }
}

PeerGroup decode(const v1::PeerGroup& in) {
    auto out = decode_fields<PeerGroup>(in);
    for (const v1::PeerMember& member : in.members()) {
        out.members.push_back(decode_fields<PeerMember>(member));
    }
    if (in.has_reads()) {
        out.reads = decode(in.reads(), out.members.size());
    }
    return out;
}

std::optional<RevisionPin> decode(const v1::RevisionPin& in) {
    const auto revision = domain::parse_revision(in.revision());
    if (!revision) {
        return std::nullopt;
    }
    const bool has_marks =
        in.marks().digests().size() <= static_cast<int>(domain::kManifestMarksMax);
    return RevisionPin{
        in.dataset_uid(), *revision, has_marks ? decode(in.marks()) : domain::ManifestMarks{}};
}

}  // namespace

v1::SidecarMessage encode(const Hello& hello) {
    v1::SidecarMessage message;
    encode_fields(hello, *message.mutable_hello());
    for (const DatasetMount& mount : hello.mounts) {
        encode_fields(mount, *message.mutable_hello()->add_datasets());
    }
    return message;
}

Hello decode(const v1::Hello& hello) {
    auto out = decode_fields<Hello>(hello);
    for (const v1::DatasetMount& mount : hello.datasets()) {
        out.mounts.push_back(decode_fields<DatasetMount>(mount));
    }
    return out;
}

v1::SidecarMessage encode(const Report& report) {
    v1::SidecarMessage message;
    v1::Report& out = *message.mutable_report();
    out.set_sequence(report.sequence);
    for (const DatasetReport& dataset : report.datasets) {
        encode(dataset, *out.add_datasets());
    }
    encode_fields(report.trainer, *out.mutable_job());
    if (report.trainer.probe.id != 0) {
        encode_fields(report.trainer.probe, *out.mutable_job()->mutable_probe());
    }
    return message;
}

Report decode(const v1::Report& report) {
    Report out;
    out.sequence = report.sequence();
    for (const v1::DatasetReport& dataset : report.datasets()) {
        out.datasets.push_back(decode(dataset));
    }
    out.trainer = decode_fields<TrainerReport>(report.job());
    out.trainer.probe = decode_fields<ProbeReport>(report.job().probe());
    return out;
}

v1::SidecarMessage encode(const PeerRequest& request) {
    v1::SidecarMessage message;
    encode_fields(request, *message.mutable_peer_request());
    return message;
}

PeerRequest decode(const v1::PeerRequest& request) {
    return decode_fields<PeerRequest>(request);
}

v1::OperatorMessage encode(const Orders& orders) {
    v1::OperatorMessage message;
    for (const Grant& grant : orders.grants) {
        encode(grant, *message.add_grants());
    }
    if (orders.probe) {
        encode_fields(*orders.probe, *message.mutable_probe());
    }
    for (const RevisionPin& pin : orders.pins) {
        encode(pin, *message.add_pins());
    }
    for (const PeerGroup& group : orders.peers) {
        encode(group, *message.add_peer_groups());
    }
    if (orders.peer_certificate) {
        encode_fields(*orders.peer_certificate, *message.mutable_peer_certificate());
    }
    message.set_signs_peers(orders.signs_peers);
    return message;
}

Orders decode(const v1::OperatorMessage& message) {
    Orders orders;
    for (const v1::Grant& grant : message.grants()) {
        orders.grants.push_back(decode(grant));
    }
    if (message.has_probe()) {
        orders.probe = decode_fields<Probe>(message.probe());
    }
    for (const v1::RevisionPin& sent : message.pins()) {
        if (auto pin = decode(sent)) {
            orders.pins.push_back(*std::move(pin));
        }
    }
    for (const v1::PeerGroup& group : message.peer_groups()) {
        orders.peers.push_back(decode(group));
    }
    if (message.has_peer_certificate()) {
        orders.peer_certificate = decode_fields<PeerCertificate>(message.peer_certificate());
    }
    orders.signs_peers = message.signs_peers();
    return orders;
}

}  // namespace stoker::control

#pragma once

#include <cstdint>
#include <tuple>

#include "proto/control/v1/control.pb.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

// One line per plain field of a message: the value's member, the message's getter and setter, and
// the operator's check of a number. Encoding, decoding and validation read these tables, so a new
// number needs a line in the proto, one in the value and one here.
namespace stoker::control {

// The operator's check of a number that a sidecar sends.
enum class Bound : std::uint8_t {
    kNone,      // not a number, or checked separately
    kPossible,  // small enough for the operator to sum
    kRising,    // kPossible, and a total that never decreases within one session
    kGrant,     // kPossible, or Bytes::unlimited() for a sidecar without a limit
    kId,        // at most kSidecarIdMax, so that adding 1 does not overflow
};

template <class Member, class Get, class Set>
struct WireField {
    Member member;  // the value's member, for std::invoke
    Get get;
    Set set;  // the message's setter; for a text its mutable_...()
    Bound bound;
};

template <class Member, class Get, class Set>
constexpr WireField<Member, Get, Set> wire_field(
    Member member, Get get, Set set, Bound bound = Bound::kNone) {
    return {member, get, set, bound};
}

// The table of a value: a tuple of WireFields.
template <class Value>
inline constexpr std::tuple<> kWireFields{};

template <>
inline constexpr auto kWireFields<DatasetMount> = [] {
    using V = DatasetMount;
    using W = v1::DatasetMount;
    return std::tuple{
        wire_field(&V::name, &W::name, &W::mutable_name),
        wire_field(&V::dataset_uid, &W::dataset_uid, &W::mutable_dataset_uid)};
}();

template <>
inline constexpr auto kWireFields<Hello> = [] {
    using V = Hello;
    using W = v1::Hello;
    return std::tuple{
        wire_field(&V::namespace_name, &W::namespace_, &W::mutable_namespace_),
        wire_field(&V::pod, &W::pod, &W::mutable_pod),
        wire_field(&V::node, &W::node, &W::mutable_node),
        wire_field(&V::training_job, &W::training_job, &W::mutable_training_job),
        wire_field(&V::training_job_uid, &W::training_job_uid, &W::mutable_training_job_uid),
        wire_field(&V::rank, &W::rank, &W::set_rank),
        wire_field(&V::version, &W::version, &W::mutable_version)};
}();

template <>
inline constexpr auto kWireFields<RankSketch> = [] {
    using V = RankSketch;
    using W = v1::RankSketch;
    return std::tuple{
        wire_field(&V::job_uid, &W::training_job_uid, &W::mutable_training_job_uid),
        wire_field(&V::revision, &W::revision, &W::set_revision),
        wire_field(&V::volume, &W::volume, &W::set_volume)};
}();

template <>
inline constexpr auto kWireFields<DiskLimit> = [] {
    using V = DiskLimit;
    using W = v1::DiskLimit;
    using enum Bound;
    return std::tuple{
        wire_field(&V::resident, &W::resident_bytes, &W::set_resident_bytes, kPossible),
        wire_field(&V::kept_free, &W::kept_free_bytes, &W::set_kept_free_bytes, kPossible)};
}();

template <>
inline constexpr auto kWireFields<FillProgress> = [] {
    using V = FillProgress;
    using W = v1::FillProgress;
    using enum Bound;
    return std::tuple{
        wire_field(&V::samples, &W::samples, &W::set_samples, kPossible),
        wire_field(&V::bytes, &W::bytes, &W::set_bytes, kPossible),
        wire_field(&V::stored_samples, &W::stored_samples, &W::set_stored_samples, kPossible),
        wire_field(&V::stored_bytes, &W::stored_bytes, &W::set_stored_bytes, kPossible),
        wire_field(&V::refused_samples, &W::refused_samples, &W::set_refused_samples, kPossible),
        wire_field(&V::over, &W::over, &W::set_over),
        wire_field(&V::shut, &W::shut, &W::set_shut)};
}();

template <>
inline constexpr auto kWireFields<domain::ManifestMarks> = [] {
    using V = domain::ManifestMarks;
    using W = v1::ManifestMarks;
    return std::tuple{wire_field(&V::samples, &W::samples, &W::set_samples, Bound::kPossible)};
}();

template <>
inline constexpr auto kWireFields<OriginChange> = [] {
    using V = OriginChange;
    using W = v1::OriginChange;
    return std::tuple{
        wire_field(&V::key, &W::key, &W::mutable_key),
        wire_field(&V::keys, &W::keys, &W::set_keys, Bound::kPossible)};
}();

template <>
inline constexpr auto kWireFields<DatasetReport> = [] {
    using V = DatasetReport;
    using W = v1::DatasetReport;
    using enum Bound;
    return std::tuple{
        wire_field(&V::name, &W::name, &W::mutable_name),
        wire_field(&V::dataset_uid, &W::dataset_uid, &W::mutable_dataset_uid),
        wire_field(&V::leader, &W::leader, &W::set_leader),
        wire_field(&V::manifest_state, &W::manifest_state, &W::set_manifest_state),
        wire_field(&V::error, &W::error, &W::mutable_error),
        wire_field(&V::objects_listed, &W::objects_listed, &W::set_objects_listed, kPossible),
        wire_field(&V::revision, &W::revision, &W::mutable_revision),
        wire_field(&V::samples, &W::samples, &W::set_samples, kPossible),
        wire_field(&V::total_bytes, &W::total_bytes, &W::set_total_bytes, kPossible),
        wire_field(&V::resident_bytes, &W::resident_bytes, &W::set_resident_bytes, kPossible),
        wire_field(&V::resident_samples, &W::resident_samples, &W::set_resident_samples, kPossible),
        wire_field(&V::window_bytes, &W::window_bytes, &W::set_window_bytes, kPossible),
        wire_field(&V::granted_bytes, &W::granted_bytes, &W::set_granted_bytes, kGrant),
        wire_field(&V::cache_bytes_read, &W::cache_bytes_read, &W::set_cache_bytes_read, kRising),
        wire_field(
            &V::origin_bytes_read, &W::origin_bytes_read, &W::set_origin_bytes_read, kRising),
        wire_field(&V::origin_requests, &W::origin_requests, &W::set_origin_requests, kRising),
        wire_field(&V::hit_samples, &W::hit_samples, &W::set_hit_samples, kRising),
        wire_field(&V::miss_samples, &W::miss_samples, &W::set_miss_samples, kRising),
        wire_field(&V::corrupt_samples, &W::corrupt_samples, &W::set_corrupt_samples, kRising),
        wire_field(&V::admitting, &W::admitting, &W::set_admitting),
        wire_field(
            &V::origin_request_time, &W::origin_request_ns, &W::set_origin_request_ns, kPossible),
        wire_field(&V::miss_bytes_read, &W::miss_bytes_read, &W::set_miss_bytes_read, kRising),
        wire_field(&V::read_revision, &W::read_revision, &W::mutable_read_revision),
        wire_field(&V::changed_key, &W::changed_key, &W::mutable_changed_key),
        wire_field(
            &V::window_needed_bytes,
            &W::window_needed_bytes,
            &W::set_window_needed_bytes,
            kPossible),
        wire_field(
            &V::window_lacks_bytes, &W::window_lacks_bytes, &W::set_window_lacks_bytes, kPossible),
        wire_field(&V::peer_address, &W::peer_address, &W::mutable_peer_address),
        wire_field(&V::peer_generation, &W::peer_generation, &W::set_peer_generation, kId),
        wire_field(&V::peer_bytes_read, &W::peer_bytes_read, &W::set_peer_bytes_read, kRising),
        wire_field(&V::peer_samples, &W::peer_samples, &W::set_peer_samples, kRising),
        wire_field(&V::peer_hedges, &W::peer_hedges, &W::set_peer_hedges, kRising),
        wire_field(&V::peer_failures, &W::peer_failures, &W::set_peer_failures, kRising),
        wire_field(
            &V::peer_connect_failures,
            &W::peer_connect_failures,
            &W::set_peer_connect_failures,
            kRising),
        wire_field(&V::peer_group_version, &W::peer_group_version, &W::set_peer_group_version, kId),
        wire_field(&V::reads_differ, &W::reads_differ, &W::set_reads_differ)};
}();

template <>
inline constexpr auto kWireFields<ProbeReport> = [] {
    using W = v1::ProbeResult;
    using enum Bound;
    const auto bypassed = [](auto part) {
        return [part](auto& probe) -> auto& {
            return probe.bypassed.*part;
        };
    };
    const auto cached = [](auto part) {
        return [part](auto& probe) -> auto& {
            return probe.cached.*part;
        };
    };
    using S = ProbeSide;
    return std::tuple{
        wire_field(&ProbeReport::id, &W::id, &W::set_id),
        wire_field(
            bypassed(&S::batches), &W::bypassed_batches, &W::set_bypassed_batches, kPossible),
        wire_field(bypassed(&S::time), &W::bypassed_ns, &W::set_bypassed_ns, kPossible),
        wire_field(bypassed(&S::bytes), &W::bypassed_bytes, &W::set_bypassed_bytes, kPossible),
        wire_field(cached(&S::batches), &W::cached_batches, &W::set_cached_batches, kPossible),
        wire_field(cached(&S::time), &W::cached_ns, &W::set_cached_ns, kPossible),
        wire_field(cached(&S::bytes), &W::cached_bytes, &W::set_cached_bytes, kPossible)};
}();

template <>
inline constexpr auto kWireFields<TrainerReport> = [] {
    using V = TrainerReport;
    using W = v1::JobReport;
    using enum Bound;
    return std::tuple{
        wire_field(&V::epoch, &W::epoch, &W::set_epoch, kPossible),
        wire_field(&V::samples, &W::samples, &W::set_samples, kRising),
        wire_field(&V::bytes, &W::bytes, &W::set_bytes, kRising),
        wire_field(&V::steps, &W::steps, &W::set_steps, kRising),
        wire_field(&V::wait, &W::wait_ns, &W::set_wait_ns, kRising),
        wire_field(&V::compute, &W::compute_ns, &W::set_compute_ns, kRising),
        wire_field(&V::fallback_samples, &W::fallback_samples, &W::set_fallback_samples, kRising),
        wire_field(&V::epoch_samples, &W::epoch_samples, &W::set_epoch_samples, kPossible),
        wire_field(&V::epoch_position, &W::epoch_position, &W::set_epoch_position, kPossible)};
}();

template <>
inline constexpr auto kWireFields<JobWeight> = [] {
    using V = JobWeight;
    using W = v1::JobWeight;
    return std::tuple{
        wire_field(&V::job_uid, &W::training_job_uid, &W::mutable_training_job_uid),
        wire_field(&V::weight, &W::weight, &W::set_weight)};
}();

template <>
inline constexpr auto kWireFields<FillOrder> = [] {
    using V = FillOrder;
    using W = v1::FillOrder;
    return std::tuple{wire_field(
        &V::origin_bytes_per_second, &W::origin_bytes_per_second, &W::set_origin_bytes_per_second)};
}();

template <>
inline constexpr auto kWireFields<Grant> = [] {
    using V = Grant;
    using W = v1::Grant;
    return std::tuple{
        wire_field(&V::dataset_uid, &W::dataset_uid, &W::mutable_dataset_uid),
        wire_field(&V::resident_bytes, &W::resident_bytes, &W::set_resident_bytes),
        wire_field(&V::valid_seconds, &W::valid_seconds, &W::set_valid_seconds),
        wire_field(
            &V::origin_bytes_per_second,
            &W::origin_bytes_per_second,
            &W::set_origin_bytes_per_second),
        wire_field(&V::reason, &W::reason, &W::mutable_reason)};
}();

template <>
inline constexpr auto kWireFields<PeerRequest> = [] {
    using V = PeerRequest;
    using W = v1::PeerRequest;
    return std::tuple{wire_field(&V::request_pem, &W::request_pem, &W::mutable_request_pem)};
}();

template <>
inline constexpr auto kWireFields<PeerMember> = [] {
    using V = PeerMember;
    using W = v1::PeerMember;
    return std::tuple{
        wire_field(&V::node, &W::node, &W::mutable_node),
        wire_field(&V::address, &W::address, &W::mutable_address),
        wire_field(&V::generation, &W::generation, &W::set_generation)};
}();

template <>
inline constexpr auto kWireFields<KnownReads> = [] {
    using V = KnownReads;
    using W = v1::KnownReads;
    return std::tuple{
        wire_field(&V::job_uid, &W::training_job_uid, &W::mutable_training_job_uid),
        wire_field(&V::seed, &W::seed, &W::set_seed),
        wire_field(&V::drop_last, &W::drop_last, &W::set_drop_last),
        wire_field(&V::epochs, &W::epochs, &W::set_epochs)};
}();

template <>
inline constexpr auto kWireFields<PeerGroup> = [] {
    using V = PeerGroup;
    using W = v1::PeerGroup;
    return std::tuple{
        wire_field(&V::dataset_uid, &W::dataset_uid, &W::mutable_dataset_uid),
        wire_field(&V::version, &W::version, &W::set_version)};
}();

template <>
inline constexpr auto kWireFields<PeerCertificate> = [] {
    using V = PeerCertificate;
    using W = v1::PeerCertificate;
    return std::tuple{
        wire_field(&V::chain, &W::chain, &W::mutable_chain),
        wire_field(&V::trust, &W::trust, &W::mutable_trust),
        wire_field(&V::renew_seconds, &W::renew_seconds, &W::set_renew_seconds)};
}();

template <>
inline constexpr auto kWireFields<Probe> = [] {
    using V = Probe;
    using W = v1::Probe;
    return std::tuple{
        wire_field(&V::id, &W::id, &W::set_id),
        wire_field(&V::batches, &W::batches, &W::set_batches)};
}();

}  // namespace stoker::control

#pragma once

#include <array>
#include <string_view>

#include "operator/api/field_codec.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

// Fields of a snapshot, member by member. Each new member of these structs needs a line here; the
// compiler checks this. A name is never reused; readers ignore unknown names.
namespace stoker::control {

// A time with nanosecond precision.
struct ExactTime {
    void read(const JsonReader& json, const std::string& name, WallTime& time) const {
        time = json.maybe_time(name).value_or(time);
    }

    [[nodiscard]] Json write(WallTime time) const {
        const auto whole = std::chrono::floor<std::chrono::seconds>(time);
        std::string text = format_time(whole);
        text.pop_back();
        return fmt::format("{}.{:09}Z", text, (time - whole).count());
    }
};

template <>
inline constexpr std::array<std::string_view, 5> kTexts<AccessKind>{
    "Exact", "Windowed", "Importance", "Measured", "Replicate"};
template <>
inline constexpr auto kTexts<AllocationReason> = kAllocationReasonTexts;

template <>
inline constexpr auto kFields<ObjectKey> =
    table(field("namespace", &ObjectKey::ns), field("name", &ObjectKey::name));

template <>
inline constexpr auto kFields<PoolNode> = table(
    field("pool", &PoolNode::pool),
    field("node", &PoolNode::node),
    field("capacity", &PoolNode::capacity));

template <>
inline constexpr auto kFields<DefaultQuota> = table(
    field("nominal", &DefaultQuota::nominal),
    field("borrowing", &DefaultQuota::borrowing),
    field("lending", &DefaultQuota::lending));

template <>
inline constexpr auto kFields<PoolView> = table(
    field("pool", &PoolView::pool),
    field("stopPolicy", &PoolView::stop),
    field("objective", &PoolView::objective),
    field("originBytesPerSecond", &PoolView::origin_bytes_per_second),
    field("pricePerGib", &PoolView::price_per_gib),
    field("pricePerRequest", &PoolView::price_per_request),
    field("defaultQuota", &PoolView::default_quota));

template <>
inline constexpr auto kFields<QuotaView> = table(
    field("namespace", &QuotaView::ns),
    field("pool", &QuotaView::pool),
    field("nominal", &QuotaView::nominal),
    field("stopPolicy", &QuotaView::stop),
    field("borrowing", &QuotaView::borrowing),
    field("lending", &QuotaView::lending),
    field("weight", &QuotaView::weight),
    field("graceSeconds", &QuotaView::grace_seconds),
    field("reclaim", &QuotaView::reclaim));

template <>
inline constexpr auto kFields<AccessPattern> = table(
    field("kind", &AccessPattern::kind),
    field("beta", &AccessPattern::beta),
    field("sketch", &AccessPattern::sketch),
    field("fullEpochs", &AccessPattern::full_epochs),
    field("replication", &AccessPattern::replication),
    field("bias", &AccessPattern::bias));

template <>
inline constexpr auto kFields<DemandDataset> = table(
    field("name", &DemandDataset::name),
    field("uid", &DemandDataset::uid),
    field("total", &DemandDataset::total),
    field("access", &DemandDataset::access),
    field("sampleBytes", &DemandDataset::sample_bytes),
    field("namespace", &DemandDataset::ns));

template <>
inline constexpr auto kFields<JobRates> = table(
    field("ingest", &JobRates::ingest),
    field("origin", &JobRates::origin),
    field("confidence", &JobRates::confidence),
    field("computeBound", &JobRates::compute_bound));

template <>
inline constexpr auto kFields<Demand> = table(
    field("job", &Demand::job),
    field("createdAt", &Demand::created_at, ExactTime{}),
    field("pool", &Demand::pool),
    field("mode", &Demand::mode),
    field("maxBytes", &Demand::max_bytes),
    field("minBytes", &Demand::min_bytes),
    field("datasets", &Demand::datasets),
    field("nodes", &Demand::nodes),
    field("rates", &Demand::rates),
    field("weight", &Demand::weight),
    field("priority", &Demand::priority),
    field("lastEpochProgress", &Demand::last_epoch_progress),
    field("fill", &Demand::fill),
    field("filled", &Demand::filled));

template <>
inline constexpr auto kFields<Holding> = table(
    field("pool", &Holding::pool),
    field("node", &Holding::node),
    field("dataset", &Holding::dataset_uid),
    field("resident", &Holding::resident),
    field("granted", &Holding::granted),
    field("outstanding", &Holding::outstanding),
    field("namespace", &Holding::ns),
    field("inFlight", &Holding::in_flight),
    field("uncounted", &Holding::uncounted),
    field("lastUsed", &Holding::last_used, ExactTime{}),
    field("target", &Holding::target));

template <>
inline constexpr auto kFields<HeldBack> = table(
    field("pool", &HeldBack::pool),
    field("namespace", &HeldBack::ns),
    field("why", &HeldBack::why));

template <>
inline constexpr auto kFields<PeerNodes> =
    table(field("dataset", &PeerNodes::dataset_uid), field("nodes", &PeerNodes::nodes));

template <>
inline constexpr auto kFields<AllocationView> = table(
    field("nodes", &AllocationView::nodes),
    field("pools", &AllocationView::pools),
    field("quotas", &AllocationView::quotas),
    field("demands", &AllocationView::demands),
    field("holdings", &AllocationView::holdings),
    field("validSeconds", &AllocationView::valid_seconds),
    field("step", &AllocationView::step),
    field("hysteresis", &AllocationView::hysteresis),
    field("settled", &AllocationView::settled),
    field("heldBack", &AllocationView::held_back),
    field("peers", &AllocationView::peers));

template <>
inline constexpr auto kFields<JobWeight> =
    table(field("job", &JobWeight::job_uid), field("weight", &JobWeight::weight));

template <>
inline constexpr auto kFields<FillOrder> =
    table(field("originBytesPerSecond", &FillOrder::origin_bytes_per_second));

template <>
inline constexpr auto kFields<Grant> = table(
    field("node", &Grant::node),
    field("dataset", &Grant::dataset_uid),
    field("resident", &Grant::resident_bytes),
    field("validSeconds", &Grant::valid_seconds),
    field("originBytesPerSecond", &Grant::origin_bytes_per_second),
    field("reason", &Grant::reason),
    field("weights", &Grant::weights),
    field("fill", &Grant::fill));

template <>
inline constexpr auto kFields<AllocationNumbers> = table(
    field("ingestRate", &AllocationNumbers::ingest_rate),
    field("originRate", &AllocationNumbers::origin_rate),
    field("rateWithoutCache", &AllocationNumbers::rate_without_cache),
    field("rate", &AllocationNumbers::rate),
    field("marginalPerGib", &AllocationNumbers::marginal_per_gib),
    field("thresholdPerGib", &AllocationNumbers::threshold_per_gib));

template <>
inline constexpr auto kFields<JobAllocation> = table(
    field("job", &JobAllocation::job),
    field("pool", &JobAllocation::pool),
    field("wanted", &JobAllocation::wanted),
    field("granted", &JobAllocation::granted),
    field("reason", &JobAllocation::reason),
    field("message", &JobAllocation::message),
    field("datasets", &JobAllocation::datasets),
    field("borrowed", &JobAllocation::borrowed),
    field("minimum", &JobAllocation::minimum),
    field("guaranteed", &JobAllocation::guaranteed),
    field("target", &JobAllocation::target),
    field("numbers", &JobAllocation::numbers));

template <>
inline constexpr auto kFields<QuotaCharge> = table(
    field("job", &QuotaCharge::job),
    field("pool", &QuotaCharge::pool),
    field("charged", &QuotaCharge::charged),
    field("marginalPerGib", &QuotaCharge::marginal_per_gib));

template <>
inline constexpr auto kFields<QuotaUse> = table(
    field("namespace", &QuotaUse::ns),
    field("pool", &QuotaUse::pool),
    field("used", &QuotaUse::used),
    field("borrowed", &QuotaUse::borrowed),
    field("lent", &QuotaUse::lent));

template <>
inline constexpr auto kFields<Reclaim> = table(
    field("pool", &Reclaim::pool),
    field("node", &Reclaim::node),
    field("dataset", &Reclaim::dataset_uid),
    field("resident", &Reclaim::resident),
    field("granted", &Reclaim::granted),
    field("graceSeconds", &Reclaim::grace_seconds),
    field("namespace", &Reclaim::ns));

template <>
inline constexpr auto kFields<Sweep> = table(
    field("pool", &Sweep::pool),
    field("node", &Sweep::node),
    field("dataset", &Sweep::dataset_uid),
    field("resident", &Sweep::resident));

template <>
inline constexpr auto kFields<FillOrigin> = table(
    field("pool", &FillOrigin::pool),
    field("bytesPerSecond", &FillOrigin::bytes_per_second),
    field("unprofiled", &FillOrigin::unprofiled));

template <>
inline constexpr auto kFields<Target> = table(
    field("pool", &Target::pool),
    field("node", &Target::node),
    field("dataset", &Target::dataset_uid),
    field("bytes", &Target::bytes));

template <>
inline constexpr auto kFields<AllocationPlan> = table(
    field("grants", &AllocationPlan::grants),
    field("targets", &AllocationPlan::targets),
    field("jobs", &AllocationPlan::jobs),
    field("charges", &AllocationPlan::charges),
    field("grantedInPool", &AllocationPlan::granted_in_pool),
    field("quotas", &AllocationPlan::quotas),
    field("reclaims", &AllocationPlan::reclaims),
    field("sweeps", &AllocationPlan::sweeps),
    field("fillOrigins", &AllocationPlan::fill_origins));

}  // namespace stoker::control

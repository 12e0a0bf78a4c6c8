#pragma once

#include <array>
#include <string_view>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/allocation/field_table.h"

// What a snapshot says, member by member. A new member of one of these structs is a new line here,
// and the compiler asks for it. Names are never reused; a reader passes over those that it does not
// know.
namespace stoker::control {

// The texts of an enum's values: as in the API, or these.
template <class E>
inline constexpr auto kTexts = kChoiceTexts<E>;

template <>
inline constexpr std::array<std::string_view, 4> kTexts<AccessKind>{
    "Exact", "Windowed", "Importance", "Measured"};
template <>
inline constexpr auto kTexts<AllocationReason> = kAllocationReasonTexts;

template <>
inline constexpr auto kFields<ObjectKey> =
    std::tuple{field("namespace", &ObjectKey::ns), field("name", &ObjectKey::name)};
static_assert(kIsWhole<ObjectKey>);

template <>
inline constexpr auto kFields<PoolNode> = std::tuple{
    field("pool", &PoolNode::pool),
    field("node", &PoolNode::node),
    field("capacity", &PoolNode::capacity)};
static_assert(kIsWhole<PoolNode>);

template <>
inline constexpr auto kFields<DefaultQuota> = std::tuple{
    field("nominal", &DefaultQuota::nominal),
    field("borrowing", &DefaultQuota::borrowing),
    field("lending", &DefaultQuota::lending)};
static_assert(kIsWhole<DefaultQuota>);

template <>
inline constexpr auto kFields<PoolView> = std::tuple{
    field("pool", &PoolView::pool),
    field("stopPolicy", &PoolView::stop),
    field("objective", &PoolView::objective),
    field("originBytesPerSecond", &PoolView::origin_bytes_per_second),
    field("pricePerGib", &PoolView::price_per_gib),
    field("pricePerRequest", &PoolView::price_per_request),
    field("defaultQuota", &PoolView::default_quota)};
static_assert(kIsWhole<PoolView>);

template <>
inline constexpr auto kFields<QuotaView> = std::tuple{
    field("namespace", &QuotaView::ns),
    field("pool", &QuotaView::pool),
    field("nominal", &QuotaView::nominal),
    field("stopPolicy", &QuotaView::stop),
    field("borrowing", &QuotaView::borrowing),
    field("lending", &QuotaView::lending),
    field("weight", &QuotaView::weight),
    field("graceSeconds", &QuotaView::grace_seconds),
    field("reclaim", &QuotaView::reclaim)};
static_assert(kIsWhole<QuotaView>);

template <>
inline constexpr auto kFields<AccessPattern> = std::tuple{
    field("kind", &AccessPattern::kind),
    field("beta", &AccessPattern::beta),
    field("sketch", &AccessPattern::sketch)};
static_assert(kIsWhole<AccessPattern>);

template <>
inline constexpr auto kFields<DemandDataset> = std::tuple{
    field("name", &DemandDataset::name),
    field("uid", &DemandDataset::uid),
    field("total", &DemandDataset::total),
    field("access", &DemandDataset::access),
    field("sampleBytes", &DemandDataset::sample_bytes),
    field("namespace", &DemandDataset::ns)};
static_assert(kIsWhole<DemandDataset>);

template <>
inline constexpr auto kFields<JobRates> = std::tuple{
    field("ingest", &JobRates::ingest),
    field("origin", &JobRates::origin),
    field("confidence", &JobRates::confidence),
    field("computeBound", &JobRates::compute_bound)};
static_assert(kIsWhole<JobRates>);

template <>
inline constexpr auto kFields<Demand> = std::tuple{
    field("job", &Demand::job),
    field("createdAt", &Demand::created_at),
    field("pool", &Demand::pool),
    field("mode", &Demand::mode),
    field("maxBytes", &Demand::max_bytes),
    field("minBytes", &Demand::min_bytes),
    field("datasets", &Demand::datasets),
    field("nodes", &Demand::nodes),
    field("rates", &Demand::rates),
    field("weight", &Demand::weight),
    field("priority", &Demand::priority),
    field("lastEpochProgress", &Demand::last_epoch_progress)};
static_assert(kIsWhole<Demand>);

template <>
inline constexpr auto kFields<Holding> = std::tuple{
    field("pool", &Holding::pool),
    field("node", &Holding::node),
    field("dataset", &Holding::dataset_uid),
    field("resident", &Holding::resident),
    field("granted", &Holding::granted),
    field("outstanding", &Holding::outstanding),
    field("namespace", &Holding::ns),
    field("inFlight", &Holding::in_flight),
    field("lastUsed", &Holding::last_used)};
static_assert(kIsWhole<Holding>);

template <>
inline constexpr auto kFields<HeldBack> = std::tuple{
    field("pool", &HeldBack::pool),
    field("namespace", &HeldBack::ns),
    field("why", &HeldBack::why)};
static_assert(kIsWhole<HeldBack>);

template <>
inline constexpr auto kFields<AllocationView> = std::tuple{
    field("nodes", &AllocationView::nodes),
    field("pools", &AllocationView::pools),
    field("quotas", &AllocationView::quotas),
    field("demands", &AllocationView::demands),
    field("holdings", &AllocationView::holdings),
    field("validSeconds", &AllocationView::valid_seconds),
    field("step", &AllocationView::step),
    field("hysteresis", &AllocationView::hysteresis),
    field("settled", &AllocationView::settled),
    field("heldBack", &AllocationView::held_back)};
static_assert(kIsWhole<AllocationView>);

template <>
inline constexpr auto kFields<JobWeight> =
    std::tuple{field("job", &JobWeight::job_uid), field("weight", &JobWeight::weight)};
static_assert(kIsWhole<JobWeight>);

template <>
inline constexpr auto kFields<Grant> = std::tuple{
    field("node", &Grant::node),
    field("dataset", &Grant::dataset_uid),
    field("resident", &Grant::resident_bytes),
    field("validSeconds", &Grant::valid_seconds),
    field("originBytesPerSecond", &Grant::origin_bytes_per_second),
    field("reason", &Grant::reason),
    field("weights", &Grant::weights)};
static_assert(kIsWhole<Grant>);

template <>
inline constexpr auto kFields<AllocationNumbers> = std::tuple{
    field("ingestRate", &AllocationNumbers::ingest_rate),
    field("originRate", &AllocationNumbers::origin_rate),
    field("rateWithoutCache", &AllocationNumbers::rate_without_cache),
    field("rate", &AllocationNumbers::rate),
    field("marginalPerGib", &AllocationNumbers::marginal_per_gib),
    field("thresholdPerGib", &AllocationNumbers::threshold_per_gib)};
static_assert(kIsWhole<AllocationNumbers>);

template <>
inline constexpr auto kFields<JobAllocation> = std::tuple{
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
    field("numbers", &JobAllocation::numbers)};
static_assert(kIsWhole<JobAllocation>);

template <>
inline constexpr auto kFields<QuotaCharge> = std::tuple{
    field("job", &QuotaCharge::job),
    field("pool", &QuotaCharge::pool),
    field("charged", &QuotaCharge::charged),
    field("marginalPerGib", &QuotaCharge::marginal_per_gib)};
static_assert(kIsWhole<QuotaCharge>);

template <>
inline constexpr auto kFields<QuotaUse> = std::tuple{
    field("namespace", &QuotaUse::ns),
    field("pool", &QuotaUse::pool),
    field("used", &QuotaUse::used),
    field("borrowed", &QuotaUse::borrowed),
    field("lent", &QuotaUse::lent)};
static_assert(kIsWhole<QuotaUse>);

template <>
inline constexpr auto kFields<Reclaim> = std::tuple{
    field("pool", &Reclaim::pool),
    field("node", &Reclaim::node),
    field("dataset", &Reclaim::dataset_uid),
    field("resident", &Reclaim::resident),
    field("granted", &Reclaim::granted),
    field("graceSeconds", &Reclaim::grace_seconds),
    field("namespace", &Reclaim::ns)};
static_assert(kIsWhole<Reclaim>);

template <>
inline constexpr auto kFields<Sweep> = std::tuple{
    field("pool", &Sweep::pool),
    field("node", &Sweep::node),
    field("dataset", &Sweep::dataset_uid),
    field("resident", &Sweep::resident)};
static_assert(kIsWhole<Sweep>);

template <>
inline constexpr auto kFields<AllocationPlan> = std::tuple{
    field("grants", &AllocationPlan::grants),
    field("jobs", &AllocationPlan::jobs),
    field("charges", &AllocationPlan::charges),
    field("grantedInPool", &AllocationPlan::granted_in_pool),
    field("quotas", &AllocationPlan::quotas),
    field("reclaims", &AllocationPlan::reclaims),
    field("sweeps", &AllocationPlan::sweeps)};
static_assert(kIsWhole<AllocationPlan>);

}  // namespace stoker::control

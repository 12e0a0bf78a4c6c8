#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "wire/control/orders.h"

// Every field of our kinds that has a fixed set of values, with the CRDs' texts. A new value needs
// an entry here and in the CRD.
namespace stoker::control {

enum class DatasetAccess : std::uint8_t { kSdk, kS3, kFiles };
enum class Sampling : std::uint8_t { kEpochShuffle, kSequential, kWeighted, kUnknown };
enum class Contract : std::uint8_t { kExact, kWindowed, kImportance, kReplicate };
enum class SamplePlacement : std::uint8_t { kHash, kClairvoyant };
enum class CacheMode : std::uint8_t { kAuto, kFixed, kOff };
enum class Medium : std::uint8_t { kNvme, kMemory };
enum class EvictionPolicy : std::uint8_t { kAuto, kUniform, kLru, kLfu, kNone };
enum class Warmup : std::uint8_t { kLazy, kBeforeStart, kBackground };
enum class OnCacheFailure : std::uint8_t { kBypass, kFail };
enum class DatasetFormat : std::uint8_t {
    kObjects,
    kTar,
    kRecords,
    kMegatron,
    kTfRecord,
    kChunks,
    kBlocks
};
enum class LabelOperator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist };
enum class Consistency : std::uint8_t { kImmutable, kEtag, kTtl };
enum class PackingOrder : std::uint8_t { kRandom, kSorted };
enum class PeerMode : std::uint8_t { kAuto, kOff };
enum class StopPolicy : std::uint8_t { kNone, kHold, kHoldAndDrain };

// Kind of the object that holds a certificate bundle.
enum class BundleKind : std::uint8_t { kConfigMap, kSecret };

// Which lent bytes a namespace gets back.
enum class ReclaimPolicy : std::uint8_t {
    kAny,                   // all that its jobs can use
    kLowerMarginalBenefit,  // bytes that are worth less to the borrowers than to the owner's jobs
    kNever,                 // none while the borrowers use them
};

// The objective by which a pool's bytes are allocated.
enum class Objective : std::uint8_t {
    kThroughput,  // most origin traffic saved for jobs that wait for data
    kMaxMin,      // maximise the slowest job, then the next; ties as kThroughput
    kCost,        // least cost of requests and bytes at the origin
    kEven,        // baseline for comparison: equal shares, regardless of benefit
};

// The texts of an enum's values, in order.
template <class E>
inline constexpr std::array<std::string_view, 0> kChoiceTexts{};

template <>
inline constexpr std::array<std::string_view, 3> kChoiceTexts<DatasetAccess>{"SDK", "S3", "Files"};
template <>
inline constexpr std::array<std::string_view, 4> kChoiceTexts<Sampling>{
    "EpochShuffle", "Sequential", "Weighted", "Unknown"};
template <>
inline constexpr std::array<std::string_view, 4> kChoiceTexts<Contract>{
    "Exact", "Windowed", "Importance", "Replicate"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<SamplePlacement>{
    "Hash", "Clairvoyant"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<ReadOrder>{
    "Stoker", "DistributedSampler"};
template <>
inline constexpr std::array<std::string_view, 3> kChoiceTexts<CacheMode>{"Auto", "Fixed", "Off"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<Medium>{"NVMe", "Memory"};
template <>
inline constexpr std::array<std::string_view, 5> kChoiceTexts<EvictionPolicy>{
    "Auto", "Uniform", "LRU", "LFU", "None"};
template <>
inline constexpr std::array<std::string_view, 3> kChoiceTexts<Warmup>{
    "Lazy", "BeforeStart", "Background"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<OnCacheFailure>{"Bypass", "Fail"};
template <>
inline constexpr std::array<std::string_view, 7> kChoiceTexts<DatasetFormat>{
    "Objects", "Tar", "Records", "Megatron", "TFRecord", "Chunks", "Blocks"};
template <>
inline constexpr std::array<std::string_view, 4> kChoiceTexts<LabelOperator>{
    "In", "NotIn", "Exists", "DoesNotExist"};
template <>
inline constexpr std::array<std::string_view, 3> kChoiceTexts<Consistency>{
    "Immutable", "ETag", "TTL"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<PackingOrder>{"Random", "Sorted"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<PeerMode>{"Auto", "Off"};
template <>
inline constexpr std::array<std::string_view, 3> kChoiceTexts<StopPolicy>{
    "None", "Hold", "HoldAndDrain"};
template <>
inline constexpr std::array<std::string_view, 2> kChoiceTexts<BundleKind>{"ConfigMap", "Secret"};
template <>
inline constexpr std::array<std::string_view, 3> kChoiceTexts<ReclaimPolicy>{
    "Any", "LowerMarginalBenefit", "Never"};
template <>
inline constexpr std::array<std::string_view, 4> kChoiceTexts<Objective>{
    "Throughput", "MaxMin", "Cost", "Even"};

// The text of a value, as in the CRD.
template <class E>
constexpr std::string_view choice_text(E value) {
    static_assert(!kChoiceTexts<E>.empty(), "this enum has no texts");
    return kChoiceTexts<E>[static_cast<std::size_t>(value)];
}

}  // namespace stoker::control

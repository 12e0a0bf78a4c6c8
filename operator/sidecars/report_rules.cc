#include "operator/sidecars/report_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "common/config/host_port.h"
#include "wire/control/codec/wire_fields.h"

namespace stoker::control {

namespace {

constexpr std::uint64_t number(std::uint64_t value) {
    return value;
}

constexpr std::uint64_t number(Bytes value) {
    return value.count();
}

// A negative duration becomes a huge number here.
constexpr std::uint64_t number(Duration value) {
    return static_cast<std::uint64_t>(value.count());
}

template <class T>
bool is_possible(const T& value, Bound bound) {
    if constexpr (requires { number(value); }) {
        constexpr bool kIsTime = std::is_same_v<T, Duration>;
        const bool is_no_limit =
            bound == Bound::kGrant && number(value) == number(Bytes::unlimited());
        const std::uint64_t max = kIsTime               ? kSidecarTimeMax
                                  : bound == Bound::kId ? kSidecarIdMax
                                                        : kSidecarCountMax;
        return bound == Bound::kNone || is_no_limit || number(value) <= max;
    } else {
        return true;
    }
}

// Calls holds(field) for each field in kWireFields<Value>; true if it holds for all.
template <class Value, class Predicate>
bool for_all_fields(Predicate holds) {
    return std::apply(
        [&](const auto&... field) { return (holds(field) && ...); }, kWireFields<Value>);
}

template <class Value>
bool all_possible(const Value& value) {
    return for_all_fields<Value>([&](const auto& field) {
        return is_possible(std::invoke(field.member, value), field.bound);
    });
}

template <class Value>
bool none_fell(const Value& before, const Value& next) {
    return for_all_fields<Value>([&](const auto& field) {
        return field.bound != Bound::kRising ||
               std::invoke(field.member, before) <= std::invoke(field.member, next);
    });
}

template <class Value>
bool same_besides_numbers(const Value& before, const Value& next) {
    return for_all_fields<Value>([&](const auto& field) {
        const bool is_number = field.bound != Bound::kNone && field.bound != Bound::kId;
        return is_number || std::invoke(field.member, before) == std::invoke(field.member, next);
    });
}

const DatasetReport* find_dataset(const Report* report, std::string_view name) {
    if (report == nullptr) {
        return nullptr;
    }
    const auto found = std::find_if(
        report->datasets.begin(), report->datasets.end(), [&](const DatasetReport& dataset) {
            return dataset.name == name;
        });
    return found == report->datasets.end() ? nullptr : &*found;
}

// Upper limit: no job reads a dataset this often in one epoch.
constexpr double kSketchVolumeMax = 1e6;

bool is_possible(const RankSketch& sketch) {
    const bool masses_possible = std::ranges::all_of(
        sketch.masses, [](float mass) { return std::isfinite(mass) && mass >= 0; });
    return masses_possible && sketch.masses.size() <= kRankSketchSizeMax && sketch.revision > 0 &&
           sketch.volume >= 0 && sketch.volume <= kSketchVolumeMax;
}

Status validate_sketches(const DatasetReport& dataset) {
    if (dataset.sketches.size() > kSidecarSketchCountMax ||
        (!dataset.leader && !dataset.sketches.empty())) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} sketches of dataset '{}'", dataset.sketches.size(), dataset.name));
    }
    std::set<std::string_view> jobs;
    for (const RankSketch& sketch : dataset.sketches) {
        STOKER_TRY_VOID(validate_name("the job of a sketch", sketch.job_uid));
        if (!jobs.insert(sketch.job_uid).second || !is_possible(sketch)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("a sketch of dataset '{}' is out of range", dataset.name));
        }
    }
    return {};
}

const RankSketch* find_sketch(const DatasetReport* dataset, const RankSketch& like) {
    if (dataset == nullptr) {
        return nullptr;
    }
    const auto found = std::ranges::find_if(dataset->sketches, [&](const RankSketch& sketch) {
        return sketch.job_uid == like.job_uid && sketch.revision == like.revision;
    });
    return found == dataset->sketches.end() ? nullptr : &*found;
}

// Checks the revision, if any, and its ManifestMarks.
bool is_possible_revision(const DatasetReport& report) {
    constexpr std::size_t kDigits = 16;
    const std::string& digits = report.read_revision;
    const bool is_hex = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hex && (digits.empty() || digits.size() == kDigits) &&
           all_possible(report.origin_change.value_or(OriginChange{})) &&
           all_possible(report.marks) && report.marks.digests.size() <= domain::kManifestMarksMax;
}

// The address goes to the other members of the group, so it is printable and has a port.
bool is_possible_peer(const DatasetReport& report) {
    constexpr std::size_t kAddressBytesMax = 255;
    const std::string& address = report.peer_address;
    if (address.empty()) {
        return true;
    }
    const auto parsed = config::parse_host_port(address);
    return report.peer_generation != 0 && address.size() <= kAddressBytesMax && parsed &&
           !parsed->host.empty() && parsed->port != 0 &&
           std::ranges::all_of(address, [](char c) { return c > ' ' && c < '\x7f'; });
}

Status validate_dataset(
    const Hello& hello, const DatasetReport* before, const DatasetReport& next) {
    const bool mounted =
        std::find(
            hello.mounts.begin(), hello.mounts.end(), DatasetMount{next.name, next.dataset_uid}) !=
        hello.mounts.end();
    if (!mounted) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("dataset '{:.64}' is not in the hello", next.name));
    }
    if (next.revision.size() > kNameBytesMax || !all_possible(next) ||
        !all_possible(next.disk_limit.value_or(DiskLimit{})) ||
        !all_possible(next.fill.value_or(FillProgress{})) || !is_possible_revision(next)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("report of dataset '{}' has out-of-range counters", next.name));
    }
    if (!is_possible_peer(next)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("report of dataset '{}' has an invalid peer address", next.name));
    }
    if (before != nullptr && !none_fell(*before, next)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("counters of dataset '{}' went backwards within one session", next.name));
    }
    return validate_sketches(next);
}

Status validate_trainer(const TrainerReport* before, const TrainerReport& next) {
    if (!all_possible(next) || !all_possible(next.probe)) {
        return fail(ErrorCode::kInvalidArgument, "trainer report has out-of-range counters");
    }
    if (before != nullptr && !none_fell(*before, next)) {
        return fail(
            ErrorCode::kInvalidArgument, "trainer counters went backwards within one session");
    }
    return {};
}

Status validate_mounts(const std::vector<DatasetMount>& mounts) {
    if (mounts.size() > kSidecarDatasetCountMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("more than {} datasets", kSidecarDatasetCountMax));
    }
    std::set<std::string_view> names;
    for (const DatasetMount& mount : mounts) {
        STOKER_TRY_VOID(validate_name("the name of a dataset", mount.name));
        STOKER_TRY_VOID(validate_name("the uid of a dataset", mount.dataset_uid));
        // Two entries of one job may name the same Dataset: they share its node directory.
        if (!names.insert(mount.name).second) {
            return fail(ErrorCode::kInvalidArgument, fmt::format("dataset '{}' twice", mount.name));
        }
    }
    return {};
}

bool is_over(const DatasetReport& report) {
    return report.fill && report.fill->over;
}

}  // namespace

bool is_news(const Report* before, const Report& next) {
    if (before == nullptr || before->datasets.size() != next.datasets.size()) {
        return true;
    }
    return !std::equal(
        before->datasets.begin(),
        before->datasets.end(),
        next.datasets.begin(),
        [](const DatasetReport& a, const DatasetReport& b) {
            return same_besides_numbers(a, b) && a.marks == b.marks &&
                   a.origin_change == b.origin_change && a.corrupt_samples == b.corrupt_samples &&
                   is_over(a) == is_over(b);
        });
}

Status validate_hello(const Hello& hello) {
    STOKER_TRY_VOID(validate_name("namespace", hello.namespace_name));
    STOKER_TRY_VOID(validate_name("pod", hello.pod));
    STOKER_TRY_VOID(validate_name("node", hello.node));
    STOKER_TRY_VOID(validate_name("training_job", hello.training_job));
    STOKER_TRY_VOID(validate_name("training_job_uid", hello.training_job_uid));
    STOKER_TRY_VOID(validate_name("version", hello.version));
    if (hello.rank < 0 || hello.rank > kSidecarRankMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("rank {} is not in 0..{}", hello.rank, kSidecarRankMax));
    }
    return validate_mounts(hello.mounts);
}

Status validate_report(const Hello& hello, const Report* before, const Report& next) {
    if (next.sequence == 0) {
        return fail(ErrorCode::kInvalidArgument, "the first report must have sequence 1 or more");
    }
    if (before != nullptr && next.sequence <= before->sequence) {
        return fail(
            ErrorCode::kAlreadyExists,
            fmt::format("report {} came after report {}", next.sequence, before->sequence));
    }
    if (next.datasets.size() > hello.mounts.size()) {
        return fail(ErrorCode::kInvalidArgument, "the report has more datasets than the hello");
    }
    std::set<std::string_view> names;
    for (const DatasetReport& dataset : next.datasets) {
        if (!names.insert(dataset.name).second) {
            return fail(
                ErrorCode::kInvalidArgument, fmt::format("dataset '{:.64}' twice", dataset.name));
        }
        STOKER_TRY_VOID(validate_dataset(hello, find_dataset(before, dataset.name), dataset));
    }
    return validate_trainer(before != nullptr ? &before->trainer : nullptr, next.trainer);
}

void complete_sketches(const Report* before, Report& next) {
    for (DatasetReport& dataset : next.datasets) {
        const DatasetReport* known = find_dataset(before, dataset.name);
        std::erase_if(dataset.sketches, [known](RankSketch& sketch) {
            const RankSketch* told = sketch.masses.empty() ? find_sketch(known, sketch) : &sketch;
            if (told != nullptr && told != &sketch) {
                sketch.masses = told->masses;
            }
            return told == nullptr;
        });
    }
}

void trim_texts(Report& report) {
    for (DatasetReport& dataset : report.datasets) {
        trim(dataset.error);
        trim(dataset.changed_key);
        if (dataset.origin_change) {
            trim(dataset.origin_change->key);
        }
    }
}

}  // namespace stoker::control

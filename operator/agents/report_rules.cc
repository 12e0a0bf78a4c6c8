#include "operator/agents/report_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "common/base/utf8.h"

namespace stoker::control {

namespace {

Status validate_name(
    std::string_view what, std::string_view name, std::size_t bytes_max = kAgentNameBytesMax) {
    if (name.empty()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("{} is missing", what));
    }
    if (name.size() > bytes_max) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} is longer than {} bytes", what, bytes_max));
    }
    return {};
}

std::array<std::uint64_t, 7> rising_totals(const DatasetReport& report) {
    return {
        report.cache_bytes_read.count(),
        report.origin_bytes_read.count(),
        report.origin_requests,
        report.hit_samples,
        report.miss_samples,
        report.miss_bytes_read.count(),
        report.corrupt_samples};
}

std::array<std::uint64_t, 9> plain_numbers(const DatasetReport& report) {
    const DiskLimit limit = report.disk_limit.value_or(DiskLimit{});
    return {
        limit.resident.count(),
        limit.kept_free.count(),
        report.objects_listed,
        report.samples,
        report.total_bytes.count(),
        report.resident_bytes.count(),
        report.resident_samples,
        report.window_bytes.count(),
        // A sidecar without a limit says so by the largest number.
        report.granted_bytes.is_unlimited() ? 0 : report.granted_bytes.count()};
}

std::array<std::uint64_t, 4> rising_totals(const TrainerReport& report) {
    return {report.samples, report.bytes.count(), report.steps, report.fallback_samples};
}

// A negative duration is a huge number here.
std::array<std::uint64_t, 2> times(const TrainerReport& report) {
    return {
        static_cast<std::uint64_t>(report.wait.count()),
        static_cast<std::uint64_t>(report.compute.count())};
}

std::array<std::uint64_t, 8> plain_numbers(const TrainerReport& report) {
    return {
        report.epoch,
        report.epochs,
        report.epoch_samples,
        report.epoch_position,
        report.probe.bypassed.batches,
        report.probe.bypassed.bytes.count(),
        report.probe.cached.batches,
        report.probe.cached.bytes.count()};
}

// They begin anew with each measurement. A negative duration is a huge number here.
std::array<std::uint64_t, 2> probe_times(const TrainerReport& report) {
    return {
        static_cast<std::uint64_t>(report.probe.bypassed.time.count()),
        static_cast<std::uint64_t>(report.probe.cached.time.count())};
}

template <std::size_t N>
bool all_possible(const std::array<std::uint64_t, N>& numbers, std::uint64_t max = kAgentCountMax) {
    return std::all_of(numbers.begin(), numbers.end(), [max](std::uint64_t n) { return n <= max; });
}

template <std::size_t N>
bool none_fell(
    const std::array<std::uint64_t, N>& before, const std::array<std::uint64_t, N>& next) {
    return std::equal(before.begin(), before.end(), next.begin(), std::less_equal<>{});
}

const DatasetReport* find_dataset(const ReportBody* report, std::string_view name) {
    if (report == nullptr) {
        return nullptr;
    }
    const auto found = std::find_if(
        report->datasets.begin(), report->datasets.end(), [&](const DatasetReport& dataset) {
            return dataset.name == name;
        });
    return found == report->datasets.end() ? nullptr : &*found;
}

// No job reads a dataset so many times in one epoch.
constexpr double kSketchVolumeMax = 1e6;

bool is_possible(const RankSketch& sketch) {
    const bool masses_possible = std::ranges::all_of(
        sketch.masses, [](float mass) { return std::isfinite(mass) && mass >= 0; });
    return masses_possible && sketch.masses.size() <= kRankSketchSizeMax && sketch.revision > 0 &&
           sketch.volume >= 0 && sketch.volume <= kSketchVolumeMax;
}

Status validate_sketches(const DatasetReport& dataset) {
    if (dataset.sketches.size() > kAgentSketchCountMax ||
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
                fmt::format("impossible sketch of dataset '{}'", dataset.name));
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

// A revision, or none; marks of it.
bool is_possible_revision(const DatasetReport& report) {
    constexpr std::size_t kDigits = 16;
    const std::string& digits = report.read_revision;
    const bool is_hex = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    const std::uint64_t keys = report.origin_change ? report.origin_change->keys : 0;
    return is_hex && (digits.empty() || digits.size() == kDigits) && keys <= kAgentCountMax &&
           report.marks.samples <= kAgentCountMax &&
           report.marks.digests.size() <= domain::kManifestMarksMax;
}

Status validate_dataset(
    const AgentHello& hello, const DatasetReport* before, const DatasetReport& next) {
    const bool mounted = std::find(
                             hello.datasets.begin(),
                             hello.datasets.end(),
                             AgentMount{next.name, next.dataset_uid}) != hello.datasets.end();
    if (!mounted) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("dataset '{:.64}' is not in the hello", next.name));
    }
    const auto request_time = static_cast<std::uint64_t>(next.origin_request_time.count());
    if (next.revision.size() > kAgentNameBytesMax || request_time > kAgentTimeMax ||
        !all_possible(plain_numbers(next)) || !all_possible(rising_totals(next)) ||
        !is_possible_revision(next)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("impossible numbers of dataset '{}'", next.name));
    }
    if (before != nullptr && !none_fell(rising_totals(*before), rising_totals(next))) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("totals of dataset '{}' fell", next.name));
    }
    return validate_sketches(next);
}

Status validate_trainer(const TrainerReport* before, const TrainerReport& next) {
    if (!all_possible(rising_totals(next)) || !all_possible(plain_numbers(next)) ||
        !all_possible(times(next), kAgentTimeMax) ||
        !all_possible(probe_times(next), kAgentTimeMax)) {
        return fail(ErrorCode::kInvalidArgument, "impossible numbers of the trainer");
    }
    if (before != nullptr && (!none_fell(rising_totals(*before), rising_totals(next)) ||
                              !none_fell(times(*before), times(next)))) {
        return fail(ErrorCode::kInvalidArgument, "totals of the trainer fell");
    }
    return {};
}

Status validate_mounts(const std::vector<AgentMount>& mounts) {
    if (mounts.size() > kAgentDatasetCountMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("more than {} datasets", kAgentDatasetCountMax));
    }
    std::set<std::string_view> names;
    for (const AgentMount& mount : mounts) {
        STOKER_TRY_VOID(validate_name("the name of a dataset", mount.name));
        STOKER_TRY_VOID(validate_name("the uid of a dataset", mount.dataset_uid));
        // Two entries of one job may name the same Dataset: they share its node directory.
        if (!names.insert(mount.name).second) {
            return fail(ErrorCode::kInvalidArgument, fmt::format("dataset '{}' twice", mount.name));
        }
    }
    return {};
}

}  // namespace

Status validate_hello(const AgentHello& hello) {
    STOKER_TRY_VOID(validate_name("namespace", hello.namespace_name));
    STOKER_TRY_VOID(validate_name("pod", hello.pod));
    STOKER_TRY_VOID(validate_name("node", hello.node));
    STOKER_TRY_VOID(validate_name("training_job", hello.training_job, kAgentJobBytesMax));
    STOKER_TRY_VOID(validate_name("training_job_uid", hello.training_job_uid));
    STOKER_TRY_VOID(validate_name("version", hello.version));
    if (hello.rank < 0 || hello.rank > kAgentRankMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("rank {} is not in 0..{}", hello.rank, kAgentRankMax));
    }
    return validate_mounts(hello.datasets);
}

Status validate_report(const AgentHello& hello, const ReportBody* before, const ReportBody& next) {
    if (next.sequence == 0) {
        return fail(ErrorCode::kInvalidArgument, "a sequence starts at 1");
    }
    if (before != nullptr && next.sequence <= before->sequence) {
        return fail(
            ErrorCode::kAlreadyExists,
            fmt::format("report {} after report {}", next.sequence, before->sequence));
    }
    if (next.datasets.size() > hello.datasets.size()) {
        return fail(ErrorCode::kInvalidArgument, "more datasets than in the hello");
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

void complete_sketches(const ReportBody* before, ReportBody& next) {
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

void trim_texts(ReportBody& report) {
    for (DatasetReport& dataset : report.datasets) {
        dataset.error.resize(utf8_prefix(dataset.error, kAgentErrorBytesMax).size());
        dataset.changed_key.resize(utf8_prefix(dataset.changed_key, kAgentKeyBytesMax).size());
        if (dataset.origin_change) {
            std::string& key = dataset.origin_change->key;
            key.resize(utf8_prefix(key, kAgentKeyBytesMax).size());
        }
    }
}

}  // namespace stoker::control

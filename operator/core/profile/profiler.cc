#include "operator/core/profile/profiler.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace stoker::control {

namespace {

constexpr Duration kWindow = std::chrono::seconds{10};  // shortest window of time for a rate
constexpr std::size_t kWindowsMax = 9;                  // pooled in one profile
constexpr std::size_t kWindowsMin = 3;                  // before a profile is published
constexpr double kChange = 0.2;  // relative; a larger difference is a different rate
// Share of a window's time that the job waits for data; if less, the origin keeps up with the job.
constexpr double kWaitsFrom = 0.05;
constexpr double kRankRateMax = 1e12;  // bytes/s of one rank; a higher rate is an error or a lie
// More processes than a node has; a higher busy time per second is an error or a lie.
constexpr double kProcessesMax = 4096;
// A wait share above this says nothing about the compute share.
constexpr double kWaitShareMax = 0.999;
// Share of the bytes that missed; below it the job cannot be waiting for the origin.
constexpr double kHardlyAnyMiss = 0.01;
constexpr double kSharesApart = 0.1;
// A window whose rate differs more than this from the median is left out: a validation, a
// checkpoint or another activity interrupted the training. A window with one step more or less than
// three others differs less.
constexpr double kStray = 0.34;
// Spread, relative to the median, from which windows count as not agreeing.
constexpr double kNoAgreement = 0.5;
constexpr double kMeasuredMin = 0.1;
constexpr double kMeasuredMax = 1000;

double seconds_of(Duration time) {
    return std::chrono::duration<double>(time).count();
}

double count(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

// Zero if `values` is empty.
double median(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Median of the distances from the median, relative to the median.
double spread(const std::vector<double>& values) {
    const double center = median(values);
    if (center <= 0) {
        return 0;
    }
    std::vector<double> distances;
    distances.reserve(values.size());
    for (const double value : values) {
        distances.push_back(std::abs(value - center) / center);
    }
    return median(std::move(distances));
}

template <class List, class Field>
std::vector<double> each(const List& list, Field field) {
    std::vector<double> result;
    result.reserve(list.size());
    for (const auto& item : list) {
        result.push_back(std::invoke(field, item));
    }
    return result;
}

bool is_apart(double before, double after, double share) {
    const double larger = std::max(before, after);
    return larger > 0 && std::abs(after - before) > share * std::min(before, after);
}

// Keeps the newest kWindowsMax values. True if `next` fills `values` up for the first time.
template <class T>
bool keep_newest(std::vector<T>& values, const T& next) {
    values.push_back(next);
    if (values.size() <= kWindowsMax) {
        return values.size() == kWindowsMax;
    }
    values.erase(values.begin());
    return false;
}

bool fell(const TrainerReport& before, const TrainerReport& after) {
    return after.bytes < before.bytes || after.samples < before.samples ||
           after.wait < before.wait || after.compute < before.compute;
}

}  // namespace

JobProfiler::Start JobProfiler::read(const ProfileInput& input) const {
    Start result;
    for (const SidecarReport& report : input.ranks) {
        result.ranks[report.pod] = report;
    }
    for (const SidecarReport& report : input.leaders) {
        for (const DatasetReport& dataset : report.datasets) {
            if (dataset.leader) {
                result.fetches[{report.pod, dataset.dataset_uid}] = {
                    report.received_at,
                    dataset.origin_bytes_read.count(),
                    dataset.origin_requests,
                    dataset.origin_request_time};
            }
        }
    }
    return result;
}

bool JobProfiler::same_ranks(const Start& a, const Start& b) {
    return std::equal(
        a.ranks.begin(),
        a.ranks.end(),
        b.ranks.begin(),
        b.ranks.end(),
        [](const auto& x, const auto& y) { return x.first == y.first; });
}

bool JobProfiler::has_fallen(const Start& before, const Start& after) {
    return std::any_of(after.ranks.begin(), after.ranks.end(), [&](const auto& entry) {
        return fell(before.ranks.at(entry.first).trainer, entry.second.trainer);
    });
}

// Bytes prefetched before the first training step do not count towards the read rate.
bool JobProfiler::has_begun(const Start& start) {
    return std::all_of(start.ranks.begin(), start.ranks.end(), [](const auto& entry) {
        return entry.second.trainer.compute > Duration::zero();
    });
}

bool JobProfiler::is_long_enough(const Start& after) const {
    return std::all_of(after.ranks.begin(), after.ranks.end(), [&](const auto& entry) {
        const SidecarReport& before = start_->ranks.at(entry.first);
        return entry.second.received_at - before.received_at >= kWindow;
    });
}

bool JobProfiler::observe(const ProfileInput& input) {
    if (input.ranks.size() < input.rank_count) {
        return false;  // a report is missing: the sum would be too small
    }
    Start current = read(input);
    if (!start_ || !same_ranks(*start_, current)) {
        if (start_) {
            forget_the_past();
            paces_.clear();
        }
        start_ = std::move(current);
        granted_ = input.granted;
        return false;
    }
    if (has_fallen(*start_, current) || !has_begun(*start_)) {
        start_ = std::move(current);  // a restarted sidecar counts from zero
        return false;
    }
    if (is_apart(count(granted_), count(input.granted), kChange)) {
        forget_the_past();
        granted_ = input.granted;
        start_ = std::move(current);
        return false;
    }
    if (!is_long_enough(current)) {
        return false;
    }
    const std::optional<Window> window = measure(current);
    start_ = std::move(current);
    if (!window) {
        return false;
    }
    const bool is_whole = keep(*window);
    return publish(is_whole);
}

std::optional<JobProfiler::Window> JobProfiler::measure(const Start& after) {
    Window result;
    double bytes = 0;
    double samples = 0;
    double waited = 0;
    double busy = 0;
    double seconds = 0;
    for (const auto& [pod, report] : after.ranks) {
        const SidecarReport& before = start_->ranks.at(pod);
        const double elapsed = seconds_of(report.received_at - before.received_at);
        const double read = count(report.trainer.bytes - before.trainer.bytes);
        const double wait = seconds_of(report.trainer.wait - before.trainer.wait);
        const double compute = seconds_of(report.trainer.compute - before.trainer.compute);
        if (read / elapsed > kRankRateMax || (wait + compute) / elapsed > kProcessesMax) {
            ++refused_;
            return std::nullopt;
        }
        bytes += read;
        samples += static_cast<double>(report.trainer.samples - before.trainer.samples);
        waited += wait;
        busy += wait + compute;
        seconds += elapsed;
        result.read_rate += read / elapsed;
    }
    if (bytes <= 0 || busy <= 0) {
        return std::nullopt;  // starting, validating or writing a checkpoint
    }
    result.seconds = seconds / static_cast<double>(after.ranks.size());
    result.wait_share = std::min(waited / busy, kWaitShareMax);
    result.compute_share = 1 - result.wait_share;
    result.sample_bytes = samples > 0 ? bytes / samples : 0;
    measure_fetches(after.fetches, bytes, result);
    if (result.origin_rate && result.miss_share < kHardlyAnyMiss) {
        result.compute_share = 1;  // it waited for something other than the origin
    }
    result.ingest_rate = result.read_rate / result.compute_share;
    return result;
}

void JobProfiler::measure_fetches(const Fetches& after, double bytes, Window& window) const {
    double fetched = 0;
    double rate = 0;
    double requests = 0;
    double time = 0;
    for (const auto& [key, now] : after) {
        const auto before = start_->fetches.find(key);
        if (before == start_->fetches.end() || now.bytes < before->second.bytes ||
            now.requests < before->second.requests || now.at <= before->second.at) {
            return;  // another leader, or a restarted one
        }
        const auto more = static_cast<double>(now.bytes - before->second.bytes);
        fetched += more;
        rate += more / seconds_of(now.at - before->second.at);
        requests += static_cast<double>(now.requests - before->second.requests);
        time += std::max(seconds_of(now.time - before->second.time), 0.0);
    }
    if (after.empty()) {
        return;
    }
    window.origin_rate = rate;
    window.origin_latency = requests > 0 ? time / requests : 0;
    window.miss_share = std::min(fetched / bytes, 1.0);
}

// True if there are kWindowsMax windows for the first time.
bool JobProfiler::keep(const Window& window) {
    const bool all_paces = keep_newest(paces_, window);
    const bool all_windows = keep_newest(windows_, window);
    keep_origin(window);
    return all_paces || all_windows;
}

void JobProfiler::keep_origin(const Window& window) {
    if (!window.origin_rate || *window.origin_rate <= 0) {
        return;
    }
    if (window.wait_share >= kWaitsFrom) {
        keep_newest(origin_waited_for_, *window.origin_rate);
        drop_a_past_bound();
        return;
    }
    const auto place =
        std::lower_bound(origin_at_least_.begin(), origin_at_least_.end(), *window.origin_rate);
    origin_at_least_.insert(place, *window.origin_rate);
    if (origin_at_least_.size() > kWindowsMax) {
        origin_at_least_.erase(origin_at_least_.begin());  // the lowest lower bound
    }
}

// Drops a lower bound of the origin's rate once the job waits and gets less than that.
void JobProfiler::drop_a_past_bound() {
    const std::size_t fresh = kWindowsMin;
    if (origin_waited_for_.size() < fresh || origin_at_least_.empty()) {
        return;
    }
    const auto newest = origin_waited_for_.end() - static_cast<std::ptrdiff_t>(fresh);
    if (*std::max_element(newest, origin_waited_for_.end()) < origin_at_least_.front()) {
        origin_waited_for_.erase(origin_waited_for_.begin(), newest);
        origin_at_least_.clear();
    }
}

void JobProfiler::forget_the_past() {
    windows_.clear();
    ++regime_;
}

// Three consecutive windows that agree on another rate are a change, not noise.
void JobProfiler::forget_a_past_rate() {
    const std::size_t fresh = kWindowsMin;
    if (windows_.size() <= fresh || published_.window_count == 0) {
        return;
    }
    const std::vector<Window> newest(
        windows_.end() - static_cast<std::ptrdiff_t>(fresh), windows_.end());
    const std::vector<double> ingest = each(newest, &Window::ingest_rate);
    const bool all_apart = std::all_of(ingest.begin(), ingest.end(), [&](double rate) {
        return is_apart(published_.ingest_rate, rate, kChange) &&
               (rate > published_.ingest_rate) == (ingest[0] > published_.ingest_rate);
    });
    if (all_apart) {
        windows_.assign(newest.begin(), newest.end());
        paces_ = windows_;
        ++regime_;
    }
}

JobProfiler::Pooled JobProfiler::pool(const std::vector<Window>& windows) {
    const double center = median(each(windows, &Window::ingest_rate));
    Pooled near;
    Pooled all;
    for (const Window& window : windows) {
        all.add(window);
        if (!is_apart(center, window.ingest_rate, kStray)) {
            near.add(window);
        }
    }
    return near.seconds > 0 ? near : all;  // of an even number, none may be near the median
}

JobProfile JobProfiler::candidate() const {
    JobProfile next;
    next.method = ProfileMethod::kPredicted;
    next.ingest_rate = pool(paces_).ingest_rate();
    next.read_rate = pool(windows_).read_rate();
    next.wait_share = median(each(windows_, &Window::wait_share));
    next.sample_bytes = median(each(windows_, &Window::sample_bytes));
    next.miss_share = median(each(windows_, &Window::miss_share));
    next.origin_latency = median(each(windows_, &Window::origin_latency));
    const double waited_for = median({origin_waited_for_.begin(), origin_waited_for_.end()});
    const double at_least = median({origin_at_least_.begin(), origin_at_least_.end()});
    next.origin_rate_is_bound = at_least > (1 + kChange) * waited_for;
    next.origin_rate = next.origin_rate_is_bound ? at_least : waited_for;
    next.window_count = static_cast<std::uint32_t>(windows_.size());
    next.confidence = confidence();
    next.verdict = judge(next);
    return next;
}

double JobProfiler::confidence() const {
    const double apart = std::max(
        spread(each(paces_, &Window::ingest_rate)),
        spread({origin_waited_for_.begin(), origin_waited_for_.end()}));
    const double enough = static_cast<double>(paces_.size()) / static_cast<double>(kWindowsMax);
    return std::min(enough, 1.0) * std::max(1 - apart / kNoAgreement, 0.0);
}

ProfileVerdict JobProfiler::judge(const JobProfile& profile) const {
    if (profile.ingest_rate <= 0 || profile.origin_rate <= 0) {
        return published_.verdict;
    }
    const double potential = profile.ingest_rate / profile.origin_rate;
    const bool was_compute_bound = published_.verdict == ProfileVerdict::kComputeBound;
    if (potential < (was_compute_bound ? kDataBoundAbove : kComputeBoundBelow)) {
        return ProfileVerdict::kComputeBound;
    }
    // The origin's rate is only a lower bound here, so the job may not be data-bound.
    return profile.origin_rate_is_bound ? published_.verdict : ProfileVerdict::kDataBound;
}

bool JobProfiler::is_news(const JobProfile& next) const {
    const JobProfile& told = published_;
    return told.method == ProfileMethod::kNone || next.verdict != told.verdict ||
           next.origin_rate_is_bound != told.origin_rate_is_bound ||
           is_apart(told.ingest_rate, next.ingest_rate, kChange) ||
           is_apart(told.read_rate, next.read_rate, kChange) ||
           is_apart(told.origin_rate, next.origin_rate, kChange) ||
           std::abs(next.wait_share - told.wait_share) > kSharesApart ||
           std::abs(next.miss_share - told.miss_share) > kSharesApart;
}

bool JobProfiler::publish(bool is_whole) {
    const std::uint64_t regime = regime_;
    forget_a_past_rate();
    if (windows_.size() < kWindowsMin) {
        return false;
    }
    JobProfile next = candidate();
    const bool still_measured = regime == regime_ && published_.method == ProfileMethod::kMeasured;
    if (still_measured) {
        next.method = ProfileMethod::kMeasured;
        next.measured_benefit = published_.measured_benefit;
    }
    // The first published profile comes from few windows; its values may be off by a fifth.
    if (!is_news(next) && !is_whole) {
        published_.window_count = next.window_count;
        published_.confidence = next.confidence;
        return false;
    }
    published_ = next;
    return true;
}

bool JobProfiler::take_measured(double benefit) {
    if (!(benefit >= kMeasuredMin && benefit <= kMeasuredMax) ||
        published_.method == ProfileMethod::kNone) {
        ++refused_;
        return false;
    }
    published_.method = ProfileMethod::kMeasured;
    published_.measured_benefit = benefit;
    return true;
}

}  // namespace stoker::control

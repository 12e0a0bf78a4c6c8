#include "tests/unit/sidecar/core/sampling/scan_world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

namespace stoker::test {

namespace {

std::uint64_t share_of(double share, std::uint32_t samples) {
    return static_cast<std::uint64_t>(std::llround(share * samples));
}

sidecar::ScanLimits limits_of(const ScanSetting& setting) {
    const auto window = share_of(setting.cached * (1 - setting.kept), setting.samples);
    return {static_cast<std::uint32_t>(window), setting.lookahead_max, setting.drift_max};
}

}  // namespace

ScanWorld::ScanWorld(const ScanSetting& setting, const std::vector<ScanJob>& jobs)
    : setting_(setting),
      scan_(setting.samples, limits_of(setting), setting.seed),
      stored_(setting.samples, Stored::kNo),
      resident_max_(share_of(setting.cached * setting.kept, setting.samples)),
      window_max_(limits_of(setting).window_samples) {
    std::uint64_t seed = setting.seed;
    for (const ScanJob& job : jobs) {
        Job& added = jobs_.emplace_back();
        added.setting = job;
        sidecar::EpochShape shape{.count = setting.samples, .seed = ++seed};
        added.sampler = std::move(*sidecar::WindowedSampler::make(scan_, shape, 0));
        added.next_at = job.start;
        added.seen.assign(setting.samples, 0);
    }
}

void ScanWorld::run(std::uint64_t epochs) {
    for (;;) {
        Job& job = *std::ranges::min_element(jobs_, {}, &Job::next_at);
        if (job.epoch == epochs) {
            break;
        }
        if (!measuring_ && job.epoch == 1) {
            measuring_ = true;
            measured_from_ = totals_.fetches;
        }
        step(job);
    }
    totals_.fetched_per_job_epoch = static_cast<double>(totals_.fetches - measured_from_) /
                                    measured_job_epochs_ / setting_.samples;
}

void ScanWorld::step(Job& job) {
    if (job.position == 0) {
        begin(job);
    }
    for (std::uint32_t i = 0; i < setting_.batch; ++i) {
        std::vector<sidecar::Draw> draws;
        job.sampler->draw(0, 1, draws);
        if (draws.empty()) {
            break;
        }
        read(job, draws[0].served);
        ++draws_;
        fetch();
    }
    if (measuring_) {
        measured_job_epochs_ += static_cast<double>(setting_.batch) / setting_.samples;
    }
    const double period = static_cast<double>(setting_.batch) / setting_.samples;
    ++job.batches;
    job.next_at = job.setting.start + static_cast<double>(job.batches) * period / job.setting.speed;
    if (job.position >= setting_.samples) {
        end_epoch(job);
    }
}

void ScanWorld::begin(Job& job) {
    job.sampler->begin_epoch(0, job.epoch, 0);
    if (&job == jobs_.data()) {
        orders_.emplace_back();
    }
    fetch();
}

void ScanWorld::end_epoch(Job& job) {
    std::vector<sidecar::Draw> draws;
    job.sampler->draw(0, 1, draws);
    EXPECT_TRUE(draws.empty()) << "an epoch has as many draws as the dataset samples";
    for (std::uint8_t& seen : job.seen) {
        totals_.missed += seen == 0 ? 1 : 0;
        totals_.repeats += seen > 1 ? 1 : 0;
        seen = 0;
    }
    ++totals_.full_epochs;
    ++job.epoch;
    job.position = 0;
    job.residents_read = 0;
}

void ScanWorld::read(Job& job, SampleIndex sample) {
    if (stored_[sample] == Stored::kNo || stored_[sample] == Stored::kComing) {
        if (stored_[sample] == Stored::kNo) {
            ++totals_.fetches;
        }
        arrive(sample);  // the trainer waits for it
    }
    ++job.position;
    ++job.seen[sample];
    if (stored_[sample] == Stored::kResident) {
        ++job.residents_read;
    }
    if (measuring_ && resident_ == resident_max_ && job.epoch > 0) {
        const double even = static_cast<double>(resident_max_) / setting_.samples *
                            static_cast<double>(job.position);
        totals_.resident_drift = std::max(
            totals_.resident_drift,
            std::abs(static_cast<double>(job.residents_read) - even) / setting_.samples);
    }
    if (&job == jobs_.data()) {
        orders_.back().push_back(sample);
    }
    drop_if_unneeded(sample);
}

void ScanWorld::fetch() {
    for (;;) {
        while (!arrivals_.empty() && arrivals_.front().at <= draws_) {
            const SampleIndex sample = arrivals_.front().sample;
            arrivals_.pop_front();
            if (stored_[sample] == Stored::kComing) {
                arrive(sample);
                drop_if_unneeded(sample);
            }
        }
        const auto wanted = std::ranges::find_if(
            scan_.feed(), [this](SampleIndex sample) { return stored_[sample] == Stored::kNo; });
        if (wanted == scan_.feed().end()) {
            return;
        }
        ++totals_.fetches;
        stored_[*wanted] = Stored::kComing;
        arrivals_.push_back({draws_ + setting_.latency, *wanted});
    }
}

void ScanWorld::arrive(SampleIndex sample) {
    const bool kept = resident_ < resident_max_;
    if (kept) {
        ++resident_;
        stored_[sample] = Stored::kResident;
    } else {
        make_room();
        ++window_;
        totals_.window_max = std::max(totals_.window_max, window_);
        stored_[sample] = Stored::kWindow;
    }
    scan_.on_stored(sample, kept);
}

void ScanWorld::make_room() {
    std::vector<SampleIndex> victims;
    while (window_ >= window_max_) {
        scan_.victims({.urgent = true}, victims);
        ASSERT_FALSE(victims.empty());
        stored_[victims.back()] = Stored::kNo;
        --window_;
        ++totals_.evictions;
        scan_.on_gone(victims.back());
    }
}

void ScanWorld::drop_if_unneeded(SampleIndex sample) {
    if (stored_[sample] == Stored::kWindow && !scan_.is_needed(sample)) {
        stored_[sample] = Stored::kNo;
        --window_;
        scan_.on_gone(sample);
    }
}

}  // namespace stoker::test

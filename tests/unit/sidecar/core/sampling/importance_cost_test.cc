// What the pair of sampler and eviction policy costs an origin, against the closed forms of Law 3
// and the tests T3 and T4 that follow from them.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/core/eviction/aggregated_importance.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/sampling/importance_sampler.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 20000;
constexpr double kPackagedRead = 0.2;  // of a random one; a hit costs nothing

// Sum of twelve: near enough to a normal deviate.
double normal(Prng& luck) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) {
        sum += luck.unit();
    }
    return sum;
}

class Everybody final : public EvictionPolicy::MayGo {
public:
    bool operator()(SampleIndex /*sample*/) const override { return true; }
};

// One job on a node that holds a share of the dataset, with samples of one byte.
class Node {
public:
    Node(double share, double beta, std::uint64_t seed)
        : luck_(seed),
          capacity_(static_cast<std::uint32_t>(share * kCount)),
          sampler_(*ImportanceSampler::create(kCount, {.seed = seed, .beta = beta})),
          policy_(kCount, values_),
          stored_(kCount, false) {
        values_.set_job(
            1, {.weight = 1, .unimportant_below = sampler_->important_from(), .ranks = [this] {
                    return sampler_->relative_importance();
                }});
        for (float& loss : base_) {
            loss = static_cast<float>(std::exp(normal(luck_)));
        }
    }

    // Cost in random reads.
    double run_epoch(std::uint64_t epoch) {
        sampler_->begin_epoch(0, epoch, 0);
        policy_.refresh();
        policy_.hold(sampler_->is_full(epoch));
        cost_ = 0;
        std::vector<Draw> draws;
        do {
            std::vector<SampleIndex> ahead;
            sampler_->foresee(0, 256, ahead);
            draws.clear();
            fetch_stand_ins(ahead, sampler_->is_full(epoch));
            sampler_->draw(0, ahead.size(), draws);
            for (const Draw& draw : draws) {
                read(draw.served);
            }
            for (const SampleIndex sample : passing_) {
                sampler_->on_gone(sample);
            }
            passing_.clear();
        } while (!draws.empty());
        return cost_;
    }

private:
    // Only what may be given in the place of another is read ahead here, package by package.
    void fetch_stand_ins(const std::vector<SampleIndex>& ahead, bool full) {
        for (const SampleIndex sample : ahead) {
            if (!full && !stored_[sample] && values_.unimportant(sample)) {
                cost_ += kPackagedRead;
                keep(sample);
                if (!stored_[sample]) {
                    passing_.push_back(sample);
                }
                sampler_->on_stored(sample);
            }
        }
    }

    void read(SampleIndex sample) {
        const bool passing = std::find(passing_.begin(), passing_.end(), sample) != passing_.end();
        if (!stored_[sample] && !passing) {
            cost_ += 1;
            keep(sample);
            if (stored_[sample]) {
                sampler_->on_stored(sample);
            }
        }
        policy_.on_read(sample, stored_[sample]);
        const auto loss = static_cast<float>(base_[sample] * std::exp(0.3 * normal(luck_)));
        sampler_->on_losses(0, std::span{&sample, 1}, std::span{&loss, 1});
    }

    void keep(SampleIndex sample) {
        if (policy_.resident_bytes() >= Bytes{capacity_}) {
            std::vector<SampleIndex> victims;
            if (!policy_.make_room(sample, Bytes{1}, Everybody{}, victims)) {
                return;
            }
            for (const SampleIndex victim : victims) {
                policy_.on_gone(victim);
                sampler_->on_gone(victim);
                stored_[victim] = false;
            }
        }
        policy_.on_resident(sample, Bytes{1});
        stored_[sample] = true;
    }

    Prng luck_;
    std::uint32_t capacity_;
    std::unique_ptr<ImportanceSampler> sampler_;
    AggregatedImportance values_;
    ImportanceEviction policy_;
    std::vector<bool> stored_;
    std::vector<SampleIndex> passing_;
    std::array<float, kCount> base_{};
    double cost_ = 0;
};

double cost_per_sample(double share, double beta) {
    const auto node = std::make_unique<Node>(share, beta, 3);
    double cost = 0;
    for (std::uint64_t epoch = 0; epoch < 24; ++epoch) {
        const double of_epoch = node->run_epoch(epoch);
        cost += epoch < 8 ? 0 : of_epoch;
    }
    return cost / 16 / kCount;
}

// T3. Default is a full epoch under LRU, 1 - (w + (1-w) ln(1-w)) reads a sample; CoorDL's
// never-evict reads 1-w. The bars are those of the plan.
TEST(ImportanceCost, BeatsLruAndNeverEvictAsTheClosedFormSays) {
    constexpr double kShare = 0.2;
    const double lru = 1 - (kShare + (1 - kShare) * std::log(1 - kShare));
    const double gentle = cost_per_sample(kShare, 0.33);
    const double strong = cost_per_sample(kShare, 1);
    RecordProperty("ratio_to_lru_beta_033", std::to_string(lru / gentle));
    RecordProperty("ratio_to_lru_beta_1", std::to_string(lru / strong));
    EXPECT_GE(lru / gentle, 1.8);
    EXPECT_GE(lru / strong, 2.3);
    EXPECT_GE((1 - kShare) / gentle, 1.45);
    EXPECT_GE((1 - kShare) / strong, 1.9);
}

// Law 3: caching the most important w gives a hit share of 1-(1-w)^(1+beta) of what is asked for.
// Two jobs, the losses of the second ten times smaller, importance uncorrelated.
struct TwoJobs {
    TwoJobs()
        : first(kCount),
          second(kCount) {
        Prng luck(4);
        for (SampleIndex sample = 0; sample < kCount; ++sample) {
            first.record(sample, static_cast<float>(1 + luck.below(1U << 20U)));
            second.record(sample, static_cast<float>(1 + luck.below(1U << 20U)) / 16);
        }
        for (LossRanks* ranks : {&first, &second}) {
            ranks->start();
            ranks->advance(~std::uint64_t{0});
        }
    }

    // Hit share of a job whose requests follow rank^1, with these values deciding what stays.
    static double hits(const LossRanks& job, const std::vector<bool>& kept) {
        double hit = 0;
        double asked = 0;
        for (SampleIndex sample = 0; sample < kCount; ++sample) {
            asked += job.ranks()[sample];
            hit += kept[sample] ? job.ranks()[sample] : 0;
        }
        return hit / asked;
    }

    static std::vector<bool> keep(const ImportanceValues& values) {
        ImportanceEviction policy(kCount, values);
        constexpr std::uint32_t kCapacity = kCount / 5;
        std::vector<bool> kept(kCount, false);
        for (SampleIndex sample = 0; sample < kCount; ++sample) {
            std::vector<SampleIndex> victims;
            if (sample >= kCapacity && !policy.make_room(sample, Bytes{1}, Everybody{}, victims)) {
                continue;
            }
            for (const SampleIndex victim : victims) {
                policy.on_gone(victim);
                kept[victim] = false;
            }
            policy.on_resident(sample, Bytes{1});
            kept[sample] = true;
        }
        return kept;
    }

    AggregatedImportance aggregate(double weight_first, double weight_second) {
        AggregatedImportance values;
        values.set_job(1, {.weight = weight_first, .ranks = [this] { return first.ranks(); }});
        values.set_job(2, {.weight = weight_second, .ranks = [this] { return second.ranks(); }});
        return values;
    }

    LossRanks first;
    LossRanks second;
};

// T4, first half: .316 against .281 for keeping what one job finds important (INDA).
TEST(AggregatedCost, ServesBothJobsBetterThanEitherAlone) {
    TwoJobs jobs;
    const auto alone = TwoJobs::keep(jobs.aggregate(1, 0));
    const auto both = TwoJobs::keep(jobs.aggregate(0.5, 0.5));
    EXPECT_NEAR(TwoJobs::hits(jobs.first, alone), 0.360, 0.01);
    EXPECT_NEAR(TwoJobs::hits(jobs.second, alone), 0.200, 0.015);
    EXPECT_NEAR(TwoJobs::hits(jobs.first, both), 0.316, 0.01);
    EXPECT_NEAR(TwoJobs::hits(jobs.second, both), 0.316, 0.01);
    const double mean_alone = TwoJobs::hits(jobs.first, alone) + TwoJobs::hits(jobs.second, alone);
    const double mean_both = TwoJobs::hits(jobs.first, both) + TwoJobs::hits(jobs.second, both);
    EXPECT_GE(mean_both / mean_alone, 1.10);
}

// T4, second half, and property (a): a job whose losses are scaled keeps the very same residents.
TEST(AggregatedCost, KeepsTheSameResidentsWhateverTheScaleOfALoss) {
    TwoJobs jobs;
    const auto before = TwoJobs::keep(jobs.aggregate(0.5, 0.5));
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        jobs.second.record(sample, jobs.second.loss(sample) * 10.0F);
    }
    jobs.second.start();
    jobs.second.advance(~std::uint64_t{0});
    EXPECT_EQ(TwoJobs::keep(jobs.aggregate(0.5, 0.5)), before);
}

}  // namespace
}  // namespace stoker::sidecar

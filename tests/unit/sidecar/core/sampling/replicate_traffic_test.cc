// Traffic of replicating jobs against SHADE's figures, closed forms, and other policies on the same
// stream.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <gtest/gtest.h>

#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/eviction/replicate_eviction.h"
#include "sidecar/core/sampling/replicate_sampler.h"
#include "sidecar/simulate/shade_figures.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

double normal(Prng& prng) {
    return std::sqrt(-2 * std::log1p(-prng.unit())) * std::cos(2 * std::numbers::pi * prng.unit());
}

struct Outcome {
    double hits = 0;
    double coverage = 0;
    double fetched = 0;             // bytes, of the dataset's
    double fetched_by_lru = 0;      // on the same stream
    double fetched_by_staying = 0;  // never-evict on the same stream
};

struct Everything final {
    bool operator()(SampleIndex /*sample*/) const { return true; }
};

// As test::NodeContents, but fast.
class Node final : public Residency {
public:
    explicit Node(std::uint32_t count)
        : stored_(count),
          kept_(count) {}

    void store(SampleIndex sample, bool kept) {
        stored_[sample] = true;
        kept_[sample] = kept;
    }

    void drop(SampleIndex sample) { stored_[sample] = false; }

    [[nodiscard]] bool is_stored(SampleIndex sample) const override { return stored_[sample]; }

    [[nodiscard]] bool is_kept(SampleIndex sample) const override {
        return stored_[sample] && kept_[sample];
    }

private:
    std::vector<bool> stored_;
    std::vector<bool> kept_;
};

// A cache without prefetching. A sample that it does not keep is read and forgotten.
class Cache {
public:
    Cache(std::unique_ptr<EvictionPolicy> policy, const std::vector<Bytes>& sizes, double share)
        : policy_(std::move(policy)),
          sizes_(sizes),
          resident_(sizes.size()) {
        double bytes = 0;
        for (const Bytes size : sizes) {
            bytes += static_cast<double>(size.count());
        }
        room_ = Bytes{static_cast<std::uint64_t>(share * bytes)};
    }

    // Returns whether the read was a hit. Stores and drops samples in `node` too; a stored sample
    // is a resident there if `kept`.
    bool read(SampleIndex sample, Node* node = nullptr, bool kept = true) {
        const bool hit = resident_[sample];
        if (!hit) {
            fetched_ += sizes_[sample];
        }
        if (!hit && sizes_[sample] <= room_ && has_room(sample, node)) {
            policy_->on_resident(sample, sizes_[sample]);
            resident_[sample] = true;
            used_ += sizes_[sample];
            if (node != nullptr) {
                node->store(sample, kept);
            }
        }
        return hit;
    }

    EvictionPolicy& policy() { return *policy_; }

    [[nodiscard]] Bytes take_fetched() { return std::exchange(fetched_, Bytes{}); }

private:
    bool has_room(SampleIndex sample, Node* node) {
        const Bytes wanted = used_ + sizes_[sample];
        std::vector<SampleIndex> victims;
        if (wanted > room_ && !policy_->make_room(sample, wanted - room_, Everything{}, victims)) {
            return false;
        }
        for (const SampleIndex victim : victims) {
            policy_->on_gone(victim);
            resident_[victim] = false;
            used_ -= sizes_[victim];
            if (node != nullptr) {
                node->drop(victim);
            }
        }
        return true;
    }

    std::unique_ptr<EvictionPolicy> policy_;
    const std::vector<Bytes>& sizes_;
    std::vector<bool> resident_;
    Bytes room_;
    Bytes used_;
    Bytes fetched_;
};

// The trainer's knowledge that its cache uses.
enum class Knows : std::uint8_t {
    kScores,  // SHADE's own cache
    kDraws,   // also how often a sample will be read in the epoch
};

struct Workload {
    double cached = .2;
    SamplerSettings settings{};
    Knows knows = Knows::kDraws;
    std::uint32_t samples = 20'000;
    std::uint32_t batch = 64;
    double size_sigma = 0;
    double accuracy_change = 0;  // above 0: aggressive
    std::uint64_t seed = 5;
};

// A trainer. A sample's loss is a constant of the sample times noise drawn anew at each read. The
// sampler draws by the contents of one cache; caches of the same size with other policies get the
// same reads.
class Trainer {
public:
    explicit Trainer(Workload workload)
        : workload_(std::move(workload)),
          prng_(workload_.seed) {
        for (double& loss : losses_) {
            loss = std::exp(normal(prng_));
        }
        for (Bytes& size : sizes_) {
            const double factor = std::exp(workload_.size_sigma * normal(prng_));
            size = Bytes{static_cast<std::uint64_t>(1e5 * factor) + 1};
            bytes_ += static_cast<double>(size.count());
        }
        workload_.settings.batch = workload_.batch;
        workload_.settings.contract = "replicate";
        sampler_ = *ReplicateSampler::create(node_, workload_.samples, workload_.settings);
        sampler_->on_validation(workload_.accuracy_change);
        auto policy = std::make_unique<ReplicateEviction>(
            workload_.samples, knows_draws() ? sampler_->reads_left() : nullptr);
        eviction_ = policy.get();
        own_ = std::make_unique<Cache>(std::move(policy), sizes_, workload_.cached);
        lru_ = std::make_unique<Cache>(std::make_unique<Lru>(), sizes_, workload_.cached);
        staying_ =
            std::make_unique<Cache>(std::make_unique<NeverEvict>(), sizes_, workload_.cached);
    }

    Outcome run(std::uint64_t epochs, std::uint64_t discarded) {
        Outcome outcome;
        const auto part = [&](Cache& cache, std::uint64_t epoch) {
            const auto fetched = static_cast<double>(cache.take_fetched().count());
            return epoch < discarded ? 0.0
                                     : fetched / bytes_ / static_cast<double>(epochs - discarded);
        };
        for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
            hits_ = 0;
            seen_.assign(workload_.samples, false);
            run_epoch(epoch);
            outcome.fetched += part(*own_, epoch);
            outcome.fetched_by_lru += part(*lru_, epoch);
            outcome.fetched_by_staying += part(*staying_, epoch);
            const auto counted = static_cast<double>((epochs - discarded) * workload_.samples);
            if (epoch >= discarded) {
                outcome.hits += static_cast<double>(hits_) / counted;
                outcome.coverage += static_cast<double>(std::ranges::count(seen_, true)) / counted;
            }
        }
        return outcome;
    }

private:
    [[nodiscard]] bool knows_draws() const { return workload_.knows == Knows::kDraws; }

    // The ranks, all on this node, read batches in turns.
    void run_epoch(std::uint64_t epoch) {
        for (std::uint32_t rank = 0; rank < workload_.settings.ranks; ++rank) {
            sampler_->begin_epoch(rank, epoch, 0);
            eviction_->refresh();
        }
        for (bool ended = false; !ended;) {
            ended = true;
            for (std::uint32_t rank = 0; rank < workload_.settings.ranks; ++rank) {
                ended = !train_batch(rank) && ended;
            }
        }
    }

    // False: the rank's epoch has ended.
    bool train_batch(std::uint32_t rank) {
        std::vector<Draw> draws;
        sampler_->draw(rank, workload_.batch, draws);
        std::vector<SampleIndex> batch;
        for (const Draw& draw : draws) {
            batch.push_back(draw.served);
        }
        train(batch);
        return !batch.empty();
    }

    void train(const std::vector<SampleIndex>& batch) {
        std::vector<float> losses;
        for (const SampleIndex sample : batch) {
            read(sample);
            losses.push_back(static_cast<float>(losses_[sample] * std::exp(0.3 * normal(prng_))));
        }
        sampler_->on_losses(0, batch, losses);
        for (const SampleIndex sample : batch) {
            eviction_->on_score(sample, sampler_->score(sample));
        }
    }

    void read(SampleIndex sample) {
        // With kScores no sample counts as resident: then the sampler gathers no copies, as SHADE.
        const bool hit = own_->read(sample, &node_, knows_draws());
        hits_ += hit ? 1 : 0;
        seen_[sample] = true;
        sampler_->on_read({&sample, 1});
        eviction_->on_read(sample, hit);
        for (Cache* cache : {lru_.get(), staying_.get()}) {
            cache->policy().on_read(sample, cache->read(sample));
        }
    }

    Workload workload_;
    Node node_{workload_.samples};
    Prng prng_;
    std::vector<double> losses_ = std::vector<double>(workload_.samples);
    std::vector<Bytes> sizes_ = std::vector<Bytes>(workload_.samples);
    double bytes_ = 0;
    std::unique_ptr<ReplicateSampler> sampler_;
    ReplicateEviction* eviction_ = nullptr;
    std::unique_ptr<Cache> own_;
    std::unique_ptr<Cache> lru_;
    std::unique_ptr<Cache> staying_;
    std::vector<bool> seen_;  // in this epoch, by any rank
    std::uint64_t hits_ = 0;
};

Outcome train(const Workload& workload) {
    return Trainer{workload}.run(14, 4);
}

// The figures of law T5 of `stoker laws`: weighted draws from the first epoch on, and weight 1 for
// samples without a loss.
TEST(ReplicateTraffic, HitsAndCoverageMatchTheFiguresOfShade) {
    for (const simulate::ReplicationFigures& row : simulate::kReplication) {
        SCOPED_TRACE(testing::Message() << "cached " << row.w << " r " << row.replication);
        Workload workload{
            .cached = row.w,
            .settings = {
                .seed = 5,
                .parameters = {
                    {"replication", row.replication}, {"warmupEpochs", 0}, {"unseenScore", 1}}}};
        workload.knows = Knows::kScores;
        const Outcome shade = train(workload);
        EXPECT_NEAR(shade.hits, row.hits, 0.03);
        EXPECT_NEAR(shade.coverage, row.coverage, 0.03);
        workload.knows = Knows::kDraws;
        const Outcome ours = train(workload);
        EXPECT_GT(ours.hits, row.hits - 0.01);
        EXPECT_GT(ours.coverage, row.coverage - 0.015);
        EXPECT_GT(ours.hits, shade.hits - 0.005);
        EXPECT_GT(ours.coverage, shade.coverage - 0.01);
    }
}

// Each distinct sample is fetched once an epoch, unless it was kept from the last epoch. Residents
// are drawn as often as other samples or more often: of w residents at least 1 - 1/e of w and at
// most all are drawn.
TEST(ReplicateTraffic, FetchesEachDistinctSampleOnceAnEpoch) {
    for (const double cached : {.05, .1, .2, .3, .37, .5}) {
        for (const std::uint32_t ranks : {1U, 4U}) {
            SCOPED_TRACE(testing::Message() << "cached " << cached << ", ranks " << ranks);
            const Outcome outcome = train(
                {.cached = cached,
                 .settings = {.seed = 5, .ranks = ranks, .parameters = {{"replication", 1}}}});
            EXPECT_NEAR(outcome.coverage, .627, .005);
            EXPECT_LT(outcome.fetched, outcome.coverage - .64 * cached);
            EXPECT_GT(outcome.fetched, outcome.coverage - cached);
        }
    }
}

void expect_best_of_three(const Outcome& outcome) {
    EXPECT_LE(outcome.fetched, outcome.fetched_by_lru + 1e-9);
    EXPECT_LE(outcome.fetched, outcome.fetched_by_staying + 1e-9);
}

TEST(ReplicateTraffic, FetchesNoMoreThanLruAndNeverEvictOnTheSameStream) {
    for (const double cached : {.1, .2, .3, .37, .5}) {
        for (const double replication : {1.0, 2.0, 3.0}) {
            SCOPED_TRACE(testing::Message() << "cached " << cached << " r " << replication);
            expect_best_of_three(train(
                {.cached = cached,
                 .settings = {.seed = 5, .parameters = {{"replication", replication}}}}));
        }
    }
}

TEST(ReplicateTraffic, FetchesNoMoreThanLruAndNeverEvictAtRandomParameters) {
    Prng prng{test::seed()};
    for (int round = 0; round < 12; ++round) {
        Workload workload;
        workload.cached = .02 + .6 * prng.unit();
        workload.settings.seed = prng();
        workload.settings.ranks = static_cast<std::uint32_t>(1 + prng.below(4));
        workload.accuracy_change = prng.below(2) == 0 ? 0.1 : -0.1;
        workload.settings.parameters = {
            {"replication", 1 + .5 * static_cast<double>(prng.below(7))}};
        workload.samples = static_cast<std::uint32_t>(3000 + prng.below(20'000));
        workload.batch = static_cast<std::uint32_t>(8 + prng.below(60));
        workload.size_sigma = round % 2 == 0 ? 0 : prng.unit();
        workload.seed = prng();
        SCOPED_TRACE(
            testing::Message() << "w " << workload.cached << " r "
                               << workload.settings.number("replication") << " N "
                               << workload.samples << " batch " << workload.batch << " ranks "
                               << workload.settings.ranks << " sigma " << workload.size_sigma);
        expect_best_of_three(train(workload));
    }
}

// SHADE's figure is .85. After a first epoch that reads all samples, no score exceeds 1.19 times
// the mean (a sample that beats k others of its batch of 64 scores ln(k + 10)): a fifth of the
// samples gets at most 0.24 of the draws, each read three times, hence 0.71. (The other hits are
// of samples admitted and read again in the same epoch.)
TEST(ReplicateTraffic, HitsLessOftenThanShadesFigureAfterAFullFirstEpoch) {
    Workload workload{.settings = {.seed = 5, .parameters = {{"replication", 3}}}};
    workload.knows = Knows::kScores;
    const Outcome outcome = train(workload);
    EXPECT_NEAR(outcome.hits, .73, 0.03);
    EXPECT_NEAR(outcome.coverage, .38, 0.03);
}

}  // namespace
}  // namespace stoker::sidecar

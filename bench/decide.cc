// stoker-bench-decide [--contract NAME]... [SAMPLES]      what decisions cost, for every contract
//
// Runs two epochs of one job over SAMPLES samples (default 10,000,000) with a cache for a fifth of
// them. Measures draw, lookahead, losses, admission, eviction and refresh; moves no sample bytes.
// The first epoch reads everything and fills the cache; in the second the contract selects samples
// (selective, sampled out, replicated). Losses are those of `stoker simulate`: a fixed value per
// sample plus noise per visit.
//
// Prints one JSON object per line: `decide_ns_per_sample` (this thread's processor time per drawn
// sample, including the start of the epoch), `policy_bytes_per_sample` (peak memory of sampler and
// eviction policy, counted at the allocator), `longest_batch_us` (of 256 draws and their
// decisions) and `begin_epoch_ms`. Nothing here allocates while it is counted.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <malloc.h>

#include "common/base/prng.h"
#include "sidecar/core/eviction/aggregated_importance.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/core/eviction/replicate_eviction.h"
#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/exact_sampler.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "sidecar/core/sampling/replicate_sampler.h"
#include "sidecar/core/sampling/windowed_sampler.h"

namespace {

// Counts allocated bytes without locks: this program has one thread.
struct Heap {
    std::size_t live = 0;
    std::size_t most = 0;

    void restart() { most = live; }
};

Heap heap;

}  // namespace

void* operator new(std::size_t size) {
    void* memory = std::malloc(size);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    heap.live += malloc_usable_size(memory);
    heap.most = std::max(heap.most, heap.live);
    return memory;
}

void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
    void* memory = std::malloc(size);
    heap.live += malloc_usable_size(memory);
    heap.most = std::max(heap.most, heap.live);
    return memory;
}

void operator delete(void* memory) noexcept {
    heap.live -= malloc_usable_size(memory);
    std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
    operator delete(memory);
}

namespace stoker::bench {

namespace {

using sidecar::SampleIndex;

constexpr std::size_t kBatch = 256;
constexpr std::uint64_t kSampleBytes = 110000;
constexpr double kCacheShare = 0.2;

// Processor time of this thread; excludes other programs on the machine.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Everybody final {
    bool operator()(SampleIndex /*sample*/) const { return true; }
};

// Approximately standard normal: the sum of four uniforms taken from one word.
double about_normal(std::uint64_t word) {
    double sum = 0;
    for (int part = 0; part < 4; ++part) {
        sum += static_cast<double>((word >> (16 * part)) & 0xFFFFU) / 65536;
    }
    return (sum - 2) * std::sqrt(3.0);
}

// One contract's sampler and eviction policy, and the events that both need besides reads.
struct Subject {
    virtual ~Subject() = default;
    std::unique_ptr<sidecar::Sampler> sampler;
    std::unique_ptr<sidecar::EvictionPolicy> policy;
    std::uint64_t second_epoch = 1;  // number of the measured second epoch
    bool listens = true;             // whether the contract uses losses

    virtual void begin(std::uint64_t /*epoch*/, bool /*cache_is_full*/) {}

    virtual void on_stored(SampleIndex sample, bool /*kept*/) { sampler->on_stored(sample); }

    virtual void on_gone(SampleIndex /*sample*/) {}

    virtual void on_losses(const std::vector<SampleIndex>& /*samples*/) {}

    // Whether a sample in the window is still needed after it was read.
    virtual bool is_needed(SampleIndex /*sample*/) const { return false; }
};

struct Figures {
    double ns = 0;
    double longest_batch_ns = 0;
    double begin_ns = 0;
    std::uint64_t draws = 0;
};

class Job final : public sidecar::Residency {
public:
    explicit Job(std::uint32_t count)
        : capacity_(Bytes{static_cast<std::uint64_t>(count * kCacheShare) * kSampleBytes}),
          place_(count, Place::kAbsent),
          luck_(1) {
        for (auto* samples : {&ahead_, &victims_, &ids_}) {
            samples->reserve(16 * kBatch);
        }
        losses_.reserve(kBatch);
        draws_.reserve(kBatch);
    }

    [[nodiscard]] bool is_stored(SampleIndex sample) const override {
        return place_[sample] != Place::kAbsent;
    }

    [[nodiscard]] bool is_kept(SampleIndex sample) const override {
        return place_[sample] == Place::kResident;
    }

    Figures run_epoch(Subject& subject, std::uint64_t epoch) {
        Figures figures;
        const double start = cpu_ns();
        subject.sampler->begin_epoch(0, epoch, 0);
        subject.begin(epoch, resident_ >= capacity_);
        figures.begin_ns = figures.ns = cpu_ns() - start;
        for (std::size_t drawn = kBatch; drawn == kBatch;) {
            const double before = cpu_ns();
            read_batch(subject);
            const double between = cpu_ns();
            drawn = draws_.size();
            make_losses(subject);
            const double after = cpu_ns();
            report_losses(subject);
            const double ns = between - before + cpu_ns() - after;
            figures.longest_batch_ns = std::max(figures.longest_batch_ns, ns);
            figures.ns += ns;
            figures.draws += drawn;
        }
        return figures;
    }

private:
    enum class Place : std::uint8_t { kAbsent, kWindow, kResident };

    void read_batch(Subject& subject) {
        ahead_.clear();
        subject.sampler->foresee(0, kBatch, ahead_);
        subject.policy->expect(ahead_);
        for (const SampleIndex sample : ahead_) {
            if (place_[sample] == Place::kAbsent) {
                store(subject, sample);
            }
        }
        draws_.clear();
        subject.sampler->draw(0, kBatch, draws_);
        for (const sidecar::Draw& draw : draws_) {
            if (place_[draw.served] == Place::kAbsent) {
                store(subject, draw.served);
            }
            subject.sampler->on_read({&draw.served, 1});
            subject.policy->on_read(draw.served, true);
            if (place_[draw.served] == Place::kWindow && !subject.is_needed(draw.served)) {
                place_[draw.served] = Place::kAbsent;
                subject.on_gone(draw.served);
            }
        }
    }

    void make_losses(const Subject& subject) {
        ids_.clear();
        losses_.clear();
        for (std::size_t i = 0; subject.listens && i < draws_.size(); ++i) {
            const SampleIndex sample = draws_[i].served;
            ids_.push_back(sample);
            const double own = about_normal(Prng{sample}());
            losses_.push_back(static_cast<float>(std::exp(own + .3 * about_normal(luck_()))));
        }
    }

    void report_losses(Subject& subject) {
        if (!ids_.empty()) {
            subject.sampler->on_losses(0, ids_, losses_);
            subject.on_losses(ids_);
        }
    }

    void store(Subject& subject, SampleIndex sample) {
        const bool kept = has_room(subject, sample);
        place_[sample] = kept ? Place::kResident : Place::kWindow;
        if (kept) {
            resident_ += Bytes{kSampleBytes};
            subject.policy->on_resident(sample, Bytes{kSampleBytes});
        }
        subject.on_stored(sample, kept);
    }

    bool has_room(Subject& subject, SampleIndex sample) {
        if (resident_ + Bytes{kSampleBytes} <= capacity_) {
            return true;
        }
        victims_.clear();
        const Bytes needed{kSampleBytes};
        if (!subject.policy->make_room(sample, needed, Everybody{}, victims_)) {
            return false;
        }
        for (const SampleIndex victim : victims_) {
            subject.policy->on_gone(victim);
            subject.on_gone(victim);
            place_[victim] = Place::kAbsent;
            resident_ -= Bytes{kSampleBytes};
        }
        return true;
    }

    Bytes capacity_;
    Bytes resident_;
    std::vector<Place> place_;
    Prng luck_;
    std::vector<SampleIndex> ahead_;
    std::vector<SampleIndex> victims_;
    std::vector<SampleIndex> ids_;
    std::vector<float> losses_;
    std::vector<sidecar::Draw> draws_;
};

struct Exact final : Subject {
    explicit Exact(std::uint32_t count) {
        sidecar::EpochShape shape;
        shape.count = count;
        sampler = std::make_unique<sidecar::ExactSampler>(shape);
        policy = std::make_unique<sidecar::NeverEvict>();
        listens = false;
    }
};

struct Windowed final : Subject {
    explicit Windowed(std::uint32_t count)
        : scan(count, {.window_samples = std::max(4096U, count / 200)}, 7) {
        sidecar::EpochShape shape;
        shape.count = count;
        sampler = *sidecar::WindowedSampler::make(scan, shape, 0);
        policy = std::make_unique<sidecar::NeverEvict>();
        listens = false;
    }

    ~Windowed() override { sampler.reset(); }

    Windowed(const Windowed&) = delete;
    Windowed& operator=(const Windowed&) = delete;

    void on_stored(SampleIndex sample, bool kept) override { scan.on_stored(sample, kept); }

    void on_gone(SampleIndex sample) override { scan.on_gone(sample); }

    bool is_needed(SampleIndex sample) const override { return scan.is_needed(sample); }

    sidecar::SharedScan scan;
};

// Evicts the least important samples, by the relative importance that `sampler` measures.
struct Important : Subject {
    void keep_by(std::uint32_t count, double unimportant_below, const sidecar::ReadCurve& reads) {
        values.set_job(
            1,
            {.weight = 1, .unimportant_below = unimportant_below, .reads = reads, .ranks = [this] {
                 return sampler->relative_importance();
             }});
        auto made = std::make_unique<sidecar::ImportanceEviction>(count, values);
        heaps = made.get();
        policy = std::move(made);
    }

    void begin(std::uint64_t epoch, bool cache_is_full) override {
        heaps->refresh();
        heaps->hold(epoch == 0 && cache_is_full);
    }

    sidecar::AggregatedImportance values;
    sidecar::ImportanceEviction* heaps = nullptr;
};

struct Iis final : Important {
    Iis(const sidecar::Residency& node, std::uint32_t count) {
        auto made =
            *sidecar::ImportanceSampler::create(node, count, {.contract = "importance", .seed = 7});
        const double below = made->important_from();
        const sidecar::ReadCurve reads = made->read_curve();
        sampler = std::move(made);
        keep_by(count, below, reads);
        second_epoch = 7;
    }
};

struct Buckets final : Important {
    Buckets(const sidecar::Residency& node, std::uint32_t count) {
        sampler = *sidecar::BucketSampler::create(
            node,
            count,
            {.contract = "importance", .seed = 7, .parameters = {{"family", 1}}},
            {.adapt_rate = false});
        keep_by(count, 0, {});
    }
};

struct Replicate final : Subject {
    Replicate(const sidecar::Residency& node, std::uint32_t count) {
        auto made =
            *sidecar::ReplicateSampler::create(node, count, {.contract = "replicate", .seed = 7});
        scores = made.get();
        sampler = std::move(made);
        auto kept = std::make_unique<sidecar::ReplicateEviction>(count, scores->reads_left());
        queue = kept.get();
        policy = std::move(kept);
    }

    void begin(std::uint64_t /*epoch*/, bool /*cache_is_full*/) override {
        ranked = sampler->relative_importance().size();
        queue->refresh();
    }

    void on_losses(const std::vector<SampleIndex>& samples) override {
        for (const SampleIndex sample : samples) {
            queue->on_score(sample, scores->score(sample));
        }
    }

    const sidecar::ReplicateSampler* scores = nullptr;
    sidecar::ReplicateEviction* queue = nullptr;
    std::size_t ranked = 0;
};

struct Contract {
    std::string_view name;
    std::function<std::unique_ptr<Subject>(const sidecar::Residency&, std::uint32_t)> make;
};

const std::vector<Contract>& contracts() {
    static const std::vector<Contract> kContracts = {
        {"exact", [](auto& /*node*/, auto count) { return std::make_unique<Exact>(count); }},
        {"windowed", [](auto& /*node*/, auto count) { return std::make_unique<Windowed>(count); }},
        {"importance", [](auto& node, auto count) { return std::make_unique<Iis>(node, count); }},
        {"importance-iowa",
         [](auto& node, auto count) { return std::make_unique<Buckets>(node, count); }},
        {"replicate",
         [](auto& node, auto count) { return std::make_unique<Replicate>(node, count); }},
    };
    return kContracts;
}

void measure(const Contract& contract, std::uint32_t count) {
    Job job(count);
    const std::size_t before = heap.live;
    heap.restart();
    const auto subject = contract.make(job, count);
    const Figures first = job.run_epoch(*subject, 0);
    const Figures second = job.run_epoch(*subject, subject->second_epoch);
    const auto bytes = static_cast<double>(heap.most - before);
    fmt::print(
        "{{\"contract\": \"{}\", \"samples\": {}, \"decide_ns_per_sample\": {:.0f}, "
        "\"decide_ns_per_sample_first_epoch\": {:.0f}, \"policy_bytes_per_sample\": {:.1f}, "
        "\"longest_batch_us\": {:.0f}, \"begin_epoch_ms\": {:.1f}}}\n",
        contract.name,
        count,
        second.ns / static_cast<double>(second.draws),
        first.ns / static_cast<double>(first.draws),
        bytes / count,
        second.longest_batch_ns / 1e3,
        second.begin_ns / 1e6);
    std::fflush(stdout);
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    unsigned long count = 10'000'000;
    std::vector<std::string_view> chosen;
    bool understood = true;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--contract" && i + 1 < argc) {
            chosen.emplace_back(argv[++i]);
        } else {
            count = std::strtoul(argv[i], nullptr, 10);
            understood = understood && count > 0 && count <= 1'000'000'000;
        }
    }
    std::size_t measured = 0;
    for (const auto& contract : stoker::bench::contracts()) {
        if (chosen.empty() || std::ranges::find(chosen, contract.name) != chosen.end()) {
            ++measured;
            if (understood) {
                stoker::bench::measure(contract, static_cast<std::uint32_t>(count));
            }
        }
    }
    if (!understood || measured < std::max<std::size_t>(1, chosen.size())) {
        fmt::print(stderr, "usage: stoker-bench-decide [--contract exact|windowed|importance|");
        fmt::print(stderr, "importance-iowa|replicate]... [SAMPLES]   (1 to 1,000,000,000)\n");
        return 1;
    }
    return 0;
}

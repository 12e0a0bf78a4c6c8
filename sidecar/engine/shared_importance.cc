#include "sidecar/engine/shared_importance.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sidecar/core/sampling/exact_sampler.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "sidecar/core/sampling/windowed_sampler.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kReadingsMax = 128;

// Samples that define the order: all of a small dataset, a uniform choice of a large one, so that
// rebuilding it every epoch takes some milliseconds.
constexpr std::uint32_t kOrderSamplesMax = 1U << 16U;

AggregatedImportance::JobId id_of(const Sampler& sampler) {
    return reinterpret_cast<std::uintptr_t>(&sampler);
}

// Occurs in no uid, so a namespace named like a uid does not affect the job with that uid.
constexpr std::string_view kGuestMark = "guest:";

bool is_guest(std::string_view job) {
    return job.starts_with(kGuestMark);
}

// Uid of the job's TrainingJob. Empty: unknown. For a guest's job: "<namespace>/<uid>".
std::string uid_of(std::string_view job) {
    const bool guest = is_guest(job);
    if (guest) {
        job.remove_prefix(kGuestMark.size());
    }
    const auto first = job.find('/');
    const auto slash = guest && first != std::string_view::npos ? job.find('/', first + 1) : first;
    return std::string{slash == std::string_view::npos ? std::string_view{} : job.substr(0, slash)};
}

// Whether the sampler measures importance; exact and windowed samplers do not.
bool measures(const Sampler& sampler) {
    return dynamic_cast<const WindowedSampler*>(&sampler) == nullptr &&
           dynamic_cast<const ExactSampler*>(&sampler) == nullptr;
}

}  // namespace

std::string guest_job(std::string_view guest, std::string_view job) {
    return fmt::format("{}{}/{}", kGuestMark, guest, job);
}

SharedImportance::SharedImportance(std::uint32_t sample_count, SizeOf size_of)
    : sample_count_(sample_count),
      size_of_(size_of),
      importance_(std::move(size_of)) {
    for (SampleIndex sample = 0; sample < sample_count_; ++sample) {
        total_ += static_cast<double>(bytes_of(sample).count());
    }
}

Bytes SharedImportance::bytes_of(SampleIndex sample) const {
    return size_of_ ? size_of_(sample) : Bytes{1};
}

void SharedImportance::set_active(const Sampler& sampler, std::string_view name, bool active) {
    if (!measures(sampler)) {
        unmeasured_.erase(&sampler);
        if (active && !is_guest(name)) {
            unmeasured_.insert(&sampler);
        }
        return;
    }
    if (!active) {
        importance_.remove_job(id_of(sampler));
        active_.erase(&sampler);
        weigh_jobs();
        return;
    }
    AggregatedImportance::Job job;
    ActiveJob& mine = active_[&sampler];
    mine.name = name;
    job.weight = weight_of(mine.name);
    if (const auto* live = dynamic_cast<const ImportanceSampler*>(&sampler)) {
        job.unimportant_below = live->important_from();
        job.reads = live->read_curve();
        job.ranks = [live] { return live->relative_importance(); };
    } else {
        job.ranks = [&ranks = mine.ranks] { return std::span<const float>{ranks}; };
    }
    importance_.set_job(id_of(sampler), std::move(job));
    weigh_jobs();  // another active job may have the same uid
}

bool SharedImportance::is_guests_only() const {
    return !active_.empty() && std::ranges::all_of(active_, [](const auto& entry) {
        return is_guest(entry.second.name);
    });
}

// Guests' importance is ignored while jobs of the dataset's own namespace are active.
bool SharedImportance::counts(const ActiveJob& job) const {
    return !is_guest(job.name) || is_guests_only();
}

// A full epoch reads every sample, which says nothing about importance.
void SharedImportance::on_epoch(const Sampler& sampler, std::uint64_t epoch) {
    const auto found = active_.find(&sampler);
    if (found == active_.end()) {
        return;
    }
    ActiveJob& job = found->second;
    if (const auto* live = dynamic_cast<const ImportanceSampler*>(&sampler)) {
        job.full_epoch = live->is_full(epoch);
        note_ranks(sampler, job);
    } else {
        const auto ranks = sampler.relative_importance();
        job.ranks.assign(ranks.begin(), ranks.end());
        job.full_epoch = epoch == 0;
        order_samples();
    }
    note_epoch(job.name, epoch);
    if (evicts_for(sampler) != nullptr) {
        replicate_eviction_->refresh();
    }
    if (eviction_ != nullptr) {
        eviction_->hold(is_full_epoch());
        eviction_->set_l_share(l_share());
    }
}

// A large dataset's ranks are rebuilt during an epoch, so they are noted in mid-epoch, too.
void SharedImportance::note_ranks(const Sampler& sampler, ActiveJob& job) {
    const auto* live = dynamic_cast<const ImportanceSampler*>(&sampler);
    if (live != nullptr &&
        std::exchange(job.revision, live->importance_revision()) != job.revision) {
        order_samples();
    }
}

// Ends the job's previous epoch for all ranks as soon as its first rank begins the next one. The
// small error does not matter, because a sketch covers many epochs.
void SharedImportance::note_epoch(const std::string& job, std::uint64_t epoch) {
    if (!readings_.contains(job) && readings_.size() >= kReadingsMax) {
        std::erase_if(readings_, [this, &job](const auto& entry) {
            return !is_active(entry.first) && (is_guest(entry.first) || !is_guest(job));
        });
    }
    Reading& reading =
        readings_.try_emplace(job, Reading{RankSketch{sample_count_}, epoch}).first->second;
    if (std::exchange(reading.epoch, std::max(reading.epoch, epoch)) < epoch) {
        reading.sketch.close_epoch();
    }
}

void SharedImportance::on_drawn(const Sampler& sampler, std::span<const Draw> draws) {
    const auto job = active_.find(&sampler);
    const auto reading = job == active_.end() ? readings_.end() : readings_.find(job->second.name);
    if (reading == readings_.end()) {
        return;
    }
    note_ranks(sampler, job->second);
    for (const Draw& draw : draws) {
        const float value = importance_.value(draw.served);
        reading->second.sketch.count(order_.span_of(value), bytes_of(draw.served));
    }
}

// Call when importance has changed: updates the samples' order and the eviction values.
void SharedImportance::order_samples() {
    const std::uint32_t count = std::min(sample_count_, kOrderSamplesMax);
    std::vector<RankOrder::Entry> entries;
    entries.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto sample = static_cast<SampleIndex>(i * sample_count_ / count);
        entries.push_back({importance_.value(sample), bytes_of(sample)});
    }
    order_ = RankOrder{std::move(entries)};
    if (eviction_ != nullptr) {
        eviction_->refresh();
    }
}

std::ptrdiff_t SharedImportance::samplers_of(const std::string& uid) const {
    return std::ranges::count_if(
        active_, [&uid](const auto& entry) { return uid_of(entry.second.name) == uid; });
}

double SharedImportance::weight_of(const std::string& job) const {
    const std::string uid = uid_of(job);
    const auto named = weights_.find(uid);
    if (is_guest(job)) {
        const auto claims = static_cast<double>(std::max<std::ptrdiff_t>(samplers_of(uid), 1));
        return named == weights_.end() ? 0 : named->second / claims;
    }
    if (named != weights_.end()) {
        return named->second;
    }
    double sum = 0;
    std::size_t jobs = 0;
    for (const auto& [other, weight] : weights_) {
        const bool guest = other.find('/') != std::string::npos;
        sum += guest ? 0 : weight;
        jobs += guest ? 0 : 1;
    }
    return jobs == 0 ? 1 : sum / static_cast<double>(jobs);
}

void SharedImportance::weigh_jobs() {
    bool is_news = false;
    for (const auto& [sampler, job] : active_) {
        is_news |= importance_.set_weight(id_of(*sampler), weight_of(job.name));
    }
    if (is_news) {
        order_samples();
    }
}

void SharedImportance::set_weights(JobWeights weights) {
    weights_ = std::move(weights);
    weigh_jobs();
}

void SharedImportance::on_losses(const Sampler& sampler, std::span<const SampleIndex> samples) {
    const ReplicateSampler* scores = evicts_for(sampler);
    if (scores == nullptr) {
        return;
    }
    for (const SampleIndex sample : samples) {
        if (sample < sample_count_) {
            replicate_eviction_->on_score(sample, scores->score(sample));
        }
    }
}

std::unique_ptr<EvictionPolicy> SharedImportance::new_eviction() {
    if (active_.empty()) {
        return nullptr;
    }
    const ReplicateSampler* replicator = lone_replicator();
    if (replicator != nullptr) {
        return evicts_for(*replicator) != nullptr ? nullptr : replicate_eviction(*replicator);
    }
    return eviction_ != nullptr ? nullptr : importance_eviction();
}

std::unique_ptr<EvictionPolicy> SharedImportance::replicate_eviction(
    const ReplicateSampler& sampler) {
    auto eviction = std::make_unique<ReplicateEviction>(sample_count_, sampler.reads_left());
    for (SampleIndex sample = 0; sample < sample_count_; ++sample) {
        if (const float score = sampler.score(sample); score != 0) {
            eviction->on_score(sample, score);
        }
    }
    replicate_eviction_ = eviction.get();
    counted_ = sampler.reads_left();
    eviction_ = nullptr;
    return eviction;
}

std::unique_ptr<EvictionPolicy> SharedImportance::importance_eviction() {
    ImportanceEviction::Settings settings;
    settings.l_share = l_share();
    auto eviction = std::make_unique<ImportanceEviction>(sample_count_, importance_, settings);
    eviction->hold(is_full_epoch());
    eviction_ = eviction.get();
    replicate_eviction_ = nullptr;
    counted_ = nullptr;
    return eviction;
}

// The only job that reads the dataset, if its contract is `replicate`; else nullptr. Guests beside
// the owner do not matter.
const ReplicateSampler* SharedImportance::lone_replicator() const {
    const auto is_counted = [this](const auto& entry) { return counts(entry.second); };
    if (!unmeasured_.empty() || others_read_ || std::ranges::count_if(active_, is_counted) != 1) {
        return nullptr;
    }
    return dynamic_cast<const ReplicateSampler*>(std::ranges::find_if(active_, is_counted)->first);
}

// The sampler, if replicate_eviction_ was made for it; otherwise nullptr.
const ReplicateSampler* SharedImportance::evicts_for(const Sampler& sampler) const {
    const auto* replicator = dynamic_cast<const ReplicateSampler*>(&sampler);
    return replicator != nullptr && counted_ == replicator->reads_left() ? replicator : nullptr;
}

bool SharedImportance::is_full_epoch() const {
    return std::ranges::all_of(active_, [this](const auto& entry) {
        return entry.second.full_epoch || !counts(entry.second);
    });
}

// Mean of parameter `lShare` over the jobs whose samplers take substitutes; 0: no such job.
double SharedImportance::l_share() const {
    double sum = 0;
    std::size_t jobs = 0;
    for (const auto& [sampler, job] : active_) {
        const auto* live = dynamic_cast<const ImportanceSampler*>(sampler);
        const auto share = live != nullptr && counts(job) ? live->l_share() : std::nullopt;
        sum += share.value_or(0);
        jobs += share ? 1 : 0;
    }
    return jobs == 0 ? 0 : sum / static_cast<double>(jobs);
}

bool SharedImportance::is_active(const std::string& job) const {
    return std::ranges::any_of(
        active_, [&job](const auto& entry) { return entry.second.name == job; });
}

std::vector<JobSketch> SharedImportance::sketches() const {
    std::vector<JobSketch> found;
    for (const auto& [job, reading] : readings_) {
        const std::string uid = uid_of(job);
        const bool is_known = !uid.empty() && is_active(job) && reading.sketch.revision() > 0;
        const bool is_twice = std::ranges::find(found, uid, &JobSketch::job_uid) != found.end();
        if (is_known && !is_twice) {
            found.push_back(
                {uid,
                 reading.sketch.revision(),
                 reading.sketch.masses(),
                 static_cast<double>(reading.sketch.epoch_bytes().count()) / total_});
        }
    }
    return found;
}

}  // namespace stoker::sidecar

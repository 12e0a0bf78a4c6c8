#include "sidecar/engine/sampler_service.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "common/base/wire.h"
#include "sidecar/engine/shared_importance.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kForeseenBatches = 16;
constexpr std::size_t kForeseenMax = 16384;

// Parameters about the last epoch in a Begin, which may differ between ranks, and the sampler
// methods that take them: see docs/design/local-protocol.md.
struct LastEpoch {
    std::string_view name;
    void (Sampler::*tell)(double);
};

constexpr std::array kOfLastEpoch = {
    LastEpoch{"accuracy", &Sampler::on_quality}, LastEpoch{"waiting", &Sampler::on_waiting}};

// Not a sample of any dataset.
constexpr SampleIndex kNoSample = std::numeric_limits<SampleIndex>::max();

static_assert(
    static_cast<int>(local::DrawKind::kImportant) == static_cast<int>(Draw::Kind::kImportant) &&
        static_cast<int>(local::DrawKind::kUnimportant) ==
            static_cast<int>(Draw::Kind::kUnimportant) &&
        static_cast<int>(local::DrawKind::kSubstituted) ==
            static_cast<int>(Draw::Kind::kSubstituted) &&
        static_cast<int>(local::DrawKind::kRepeated) == static_cast<int>(Draw::Kind::kRepeated),
    "local and sampler kinds have equal values");

Status check(const local::Begin& begin, const SamplerService::Limits& limits) {
    if (begin.world_size == 0 || begin.world_size > limits.ranks ||
        begin.rank >= begin.world_size) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("rank {} is outside a world of {}", begin.rank, begin.world_size));
    }
    for (const local::Parameter& parameter : begin.parameters) {
        if (!std::isfinite(parameter.value)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("parameter '{}' is not a finite number", parameter.name));
        }
    }
    return {};
}

SamplerSettings settings_of(const local::Begin& begin, Party party) {
    SamplerSettings settings;
    settings.contract = begin.contract;
    settings.seed = begin.seed;
    settings.ranks = begin.world_size;
    settings.batch = std::clamp(begin.batch, 1U, local::kDrawSamplesMax);
    settings.party = party;
    for (const local::Parameter& parameter : begin.parameters) {
        if (std::ranges::find(kOfLastEpoch, parameter.name, &LastEpoch::name) ==
            kOfLastEpoch.end()) {
            settings.parameters.emplace(parameter.name, parameter.value);
        }
    }
    return settings;
}

// Unpacks one flag per sample from a bit array; empty if the client sent none.
std::vector<bool> unpack(const std::vector<std::byte>& bits, std::uint32_t count) {
    auto set = WireReader{bits}.get_bits(std::min<std::size_t>(count, bits.size() * 8));
    set.resize(bits.empty() ? 0 : count);
    return set;
}

}  // namespace

SamplerService::SamplerService(
    const Residency& node,
    std::uint32_t sample_count,
    SamplerSource& source,
    Limits limits,
    UnreadDraws::SizeOf record_bytes)
    : node_(node),
      sample_count_(sample_count),
      source_(source),
      limits_(limits),
      paid_(sample_count),
      sharing_(std::move(record_bytes)) {}

void SamplerService::on_stored(SampleIndex sample, bool kept) {
    source_.on_stored(sample, kept);
    sharing_.on_residency(sample, kept);
    for (auto& [name, job] : jobs_) {
        job.sampler->on_stored(sample);
    }
}

void SamplerService::on_gone(SampleIndex sample) {
    paid_[sample] = false;
    sharing_.on_residency(sample, false);
    source_.on_gone(sample);
}

Result<local::Begun> SamplerService::begin(
    StreamId stream,
    const local::Begin& begin,
    const BeginState& state,
    std::uint64_t sidecar,
    Party party) {
    STOKER_TRY_VOID(check(begin, limits_));
    leave(stream);
    STOKER_TRY(Job * job, job_for(begin, state.snapshot, party));
    if (const auto taken = job->ranks.find(begin.rank); taken != job->ranks.end()) {
        if (readers_.at(taken->second).sidecar != sidecar) {
            return fail(
                ErrorCode::kConflict,
                fmt::format("another pod draws for rank {} of job '{}'", begin.rank, begin.job));
        }
        erase(readers_.find(taken->second));
    }
    if (job->ranks.empty()) {
        source_.importance().set_active(*job->sampler, key_of(begin), true);
    }
    tell_of_last_epoch(*job, begin);
    job->ranks[begin.rank] = stream;
    job->last_used = ++uses_;
    Reader& reader = readers_[stream];
    reader = {key_of(begin), sidecar, begin.rank, begin.epoch, begin.job, {}, {}};
    reader.is_sharing = party == kOwnParty && WindowSharing::shares_a_scan(job->settings);
    if (reader.is_sharing) {
        join_sharing(begin.job);
    }
    begin_epoch(*job, reader, begin, unpack(state.served, sample_count_));
    source_.importance().on_epoch(*job->sampler, begin.epoch);
    return local::Begun{begin.epoch, job->losses};
}

void SamplerService::begin_epoch(
    const Job& job, Reader& reader, const local::Begin& begin, std::vector<bool> served) const {
    const auto skip = std::min(begin.skip, std::uint64_t{sample_count_} * 4);
    const std::size_t batches =
        std::min(kForeseenBatches * std::size_t{job.settings.batch}, kForeseenMax);
    const std::size_t horizon =
        std::max({limits_.horizon, batches, 2 * job.sampler->group_samples()});
    // Without replacement, samples served before are identified by id; with replacement only by
    // their number.
    const bool is_exactly_once = job.settings.contract == "windowed";
    if (!is_exactly_once && !served.empty()) {
        job.sampler->resume_epoch(begin.rank, begin.epoch, skip, served);
    } else {
        job.sampler->begin_epoch(begin.rank, begin.epoch, is_exactly_once ? 0 : skip);
    }
    reader.plan =
        RankPlan{begin.rank, horizon, is_exactly_once ? std::move(served) : std::vector<bool>{}};
}

// The first rank to begin an epoch sets these values for all: the ranks have one model and one
// sampler, which advances at that moment.
void SamplerService::tell_of_last_epoch(Job& job, const local::Begin& begin) {
    for (const auto& [name, tell] : kOfLastEpoch) {
        const auto given = std::ranges::find(begin.parameters, name, &local::Parameter::name);
        const auto told = job.told.find(name);
        if (given != begin.parameters.end() &&
            (told == job.told.end() || told->second != begin.epoch)) {
            job.told[name] = begin.epoch;
            (job.sampler.get()->*tell)(given->value);
        }
    }
}

std::string SamplerService::key_of(const local::Begin& begin) const {
    return source_.is_per_rank(begin.contract) ? fmt::format("{}#{}", begin.job, begin.rank)
                                               : begin.job;
}

Result<SamplerService::Job*> SamplerService::job_for(
    const local::Begin& begin, const std::string& snapshot, Party party) {
    SamplerSettings settings = settings_of(begin, party);
    const std::string key = key_of(begin);
    const auto found = jobs_.find(key);
    if (found != jobs_.end() && found->second.settings == settings) {
        return &found->second;
    }
    if (found != jobs_.end() && !found->second.ranks.empty()) {
        const SamplerSettings& theirs = found->second.settings;
        return fail(
            ErrorCode::kConflict,
            fmt::format(
                "other ranks of job '{}' began with contract '{}' with seed {}, world size {} and "
                "batch {}, or with other parameters",
                begin.job,
                theirs.contract,
                theirs.seed,
                theirs.ranks,
                theirs.batch));
    }
    STOKER_TRY(auto sampler, make_sampler(settings, begin.rank));
    jobs_.erase(key);
    STOKER_TRY_VOID(free_slots(settings));
    if (!snapshot.empty() && !sampler->restore(snapshot)) {
        STOKER_TRY(sampler, make_sampler(settings, begin.rank));  // restore() may be half done
    }
    for (SampleIndex sample = 0; sample < sample_count_; ++sample) {
        if (node_.is_stored(sample)) {
            sampler->on_stored(sample);
        }
    }
    Job& job = jobs_[key];
    job.settings = std::move(settings);
    job.sampler = std::move(sampler);
    return &job;
}

// Frees slots of the party's idle samplers if there are too many of this kind.
Result<std::unique_ptr<Sampler>> SamplerService::make_sampler(
    const SamplerSettings& settings, std::uint32_t rank) {
    const auto counts = [&settings](const Job& job) {
        return job.settings.party == settings.party && job.settings.contract == settings.contract;
    };
    for (;;) {
        auto sampler = source_.make(node_, settings, rank);
        if (sampler || sampler.error().code != ErrorCode::kResourceExhausted ||
            !forget_idle(counts)) {
            return sampler;
        }
    }
}

// Removes the job that has been idle longest, among the jobs that `counts` selects. False: none of
// them is idle.
bool SamplerService::forget_idle(const Counts& counts) {
    auto oldest = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        const bool is_idle = job->second.ranks.empty() && counts(job->second);
        if (is_idle &&
            (oldest == jobs_.end() || job->second.last_used < oldest->second.last_used)) {
            oldest = job;
        }
    }
    if (oldest == jobs_.end()) {
        return false;
    }
    jobs_.erase(oldest);
    return true;
}

// Makes room for one more job among those that `counts` selects.
Status SamplerService::free_slot(std::size_t slots, const Counts& counts) {
    const auto have =
        std::ranges::count_if(jobs_, [&counts](const auto& entry) { return counts(entry.second); });
    if (static_cast<std::size_t>(have) < slots || forget_idle(counts)) {
        return {};
    }
    return fail(
        ErrorCode::kResourceExhausted,
        fmt::format("{} jobs read this dataset under contracts already", have));
}

// Each party has a limit of its own; all guests together have another.
Status SamplerService::free_slots(const SamplerSettings& settings) {
    const auto is_of_party = [&settings](const Job& job) {
        return job.settings.party == settings.party;
    };
    if (settings.party == kOwnParty) {
        return free_slot(limits_.samplers, is_of_party);
    }
    const auto is_guests = [](const Job& job) { return job.settings.party != kOwnParty; };
    STOKER_TRY_VOID(free_slot(limits_.guest_samplers, is_of_party));
    STOKER_TRY_VOID(free_slot(limits_.guests_samplers, is_guests));
    if (source_.is_per_rank(settings.contract)) {
        return {};
    }
    const auto is_large = [this](const Job& job) {
        return !source_.is_per_rank(job.settings.contract);
    };
    const auto slots = [this](std::uint64_t samples) {
        return std::max<std::size_t>(samples / std::max(sample_count_, 1U), 1);
    };
    STOKER_TRY_VOID(free_slot(slots(limits_.guest_sampler_samples), [&](const Job& job) {
        return is_large(job) && is_of_party(job);
    }));
    return free_slot(slots(limits_.guests_sampler_samples), [&](const Job& job) {
        return is_large(job) && is_guests(job);
    });
}

void SamplerService::leave(StreamId stream) {
    const auto reader = readers_.find(stream);
    if (reader == readers_.end()) {
        return;
    }
    Job& job = jobs_.at(reader->second.job);
    job.ranks.erase(reader->second.rank);
    if (job.ranks.empty()) {
        source_.importance().set_active(*job.sampler, reader->second.job, false);
    }
    erase(reader);
}

Result<const SamplerService::Reader*> SamplerService::reader_of(
    StreamId stream, std::uint64_t epoch) const {
    const auto reader = readers_.find(stream);
    if (reader == readers_.end()) {
        return fail(
            ErrorCode::kConflict,
            "no epoch was begun on this connection, or another process has taken over the rank");
    }
    if (reader->second.epoch != epoch) {
        return fail(
            ErrorCode::kConflict,
            fmt::format("the current epoch is {}, not {}", reader->second.epoch, epoch));
    }
    return &reader->second;
}

Result<local::Drawn> SamplerService::draw(StreamId stream, const local::Draw& draw) {
    STOKER_TRY_VOID(reader_of(stream, draw.epoch));
    if (draw.count > local::kDrawSamplesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} draws, the limit is {}", draw.count, local::kDrawSamplesMax));
    }
    Reader& reader = readers_.at(stream);
    if (draw.count > outstanding_left(reader)) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("{} drawn samples must be read first", reader.plan.unread()));
    }
    Job& job = jobs_.at(reader.job);
    job.last_used = ++uses_;
    const auto draws = reader.plan.draw(*job.sampler, draw.count);
    for (const Draw& drawn : draws) {
        node_.expect(drawn.served);
    }
    if (reader.is_sharing) {
        sharing_.on_drawn(draws, node_);
    }
    source_.importance().on_drawn(*job.sampler, draws);
    return answer_of(reader, draws);
}

// Number of further draws permitted before the rank must read.
std::size_t SamplerService::outstanding_left(const Reader& reader) const {
    const auto left = [](std::size_t most, std::size_t have) {
        return most - std::min(most, have);
    };
    const std::size_t own = left(limits_.outstanding, reader.plan.unread());
    if (jobs_.at(reader.job).settings.party == kOwnParty) {
        return own;
    }
    std::size_t guests = 0;
    for (const auto& [stream, other] : readers_) {
        guests += jobs_.at(other.job).settings.party != kOwnParty ? other.plan.unread() : 0;
    }
    return std::min(own, left(limits_.guests_outstanding, guests) / 2);
}

local::Drawn SamplerService::answer_of(const Reader& reader, const std::vector<Draw>& draws) {
    local::Drawn drawn;
    drawn.epoch = reader.epoch;
    drawn.ended = reader.plan.has_ended();
    for (const Draw& draw : draws) {
        drawn.requested.push_back(draw.requested);
        drawn.served.push_back(draw.served);
        const auto kind = static_cast<std::uint8_t>(draw.kind);
        drawn.kinds.push_back(paid_[draw.served] ? kind | local::kKindOnNode : kind);
        paid_[draw.served] = true;
    }
    return drawn;
}

std::vector<SampleIndex> SamplerService::samples_of(std::span<const std::uint64_t> ids) const {
    std::vector<SampleIndex> samples(ids.size());
    std::ranges::transform(ids, samples.begin(), [this](std::uint64_t id) {
        return id < sample_count_ ? static_cast<SampleIndex>(id) : kNoSample;
    });
    return samples;
}

void SamplerService::on_similarity(StreamId stream, const local::Similarity& similarity) {
    if (const auto reader = readers_.find(stream); reader != readers_.end()) {
        jobs_.at(reader->second.job)
            .sampler->on_similarity(samples_of(similarity.samples), similarity.hashes);
    }
}

void SamplerService::on_read(std::optional<StreamId> stream, std::span<const SampleIndex> samples) {
    const auto reader = stream ? readers_.find(*stream) : readers_.end();
    for (const SampleIndex sample : samples) {
        paid_[sample] = paid_[sample] || node_.is_stored(sample);
        if (reader != readers_.end()) {
            const bool was_unread = reader->second.plan.on_read(sample);
            if (was_unread && reader->second.is_sharing) {
                sharing_.on_read(sample);
            }
        }
    }
    if (reader != readers_.end()) {
        jobs_.at(reader->second.job).sampler->on_read(samples);
    }
}

Result<local::EpochTally> SamplerService::report(StreamId stream, std::uint64_t epoch) const {
    STOKER_TRY(const Reader* reader, reader_of(stream, epoch));
    const EpochReport report = jobs_.at(reader->job).sampler->report(reader->rank);
    return local::EpochTally{
        epoch,
        report.requested,
        report.distinct,
        report.repeated,
        report.substituted,
        report.skipped,
        report.losses_used,
        report.losses_ignored};
}

Result<local::Snapshot> SamplerService::snapshot(StreamId stream) const {
    const auto reader = readers_.find(stream);
    if (reader == readers_.end()) {
        return fail(ErrorCode::kConflict, "no epoch was begun on this connection");
    }
    const std::string state = jobs_.at(reader->second.job).sampler->snapshot();
    const auto raw = std::as_bytes(std::span{state});
    return local::Snapshot{{raw.begin(), raw.end()}};
}

std::optional<PlanTail> SamplerService::new_plan(StreamId stream, std::uint32_t in_force) {
    Reader& reader = readers_.at(stream);
    return reader.plan.renew(*jobs_.at(reader.job).sampler, in_force);
}

}  // namespace stoker::sidecar

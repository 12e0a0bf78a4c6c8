#include "sidecar/engine/sampling_desk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "sidecar/engine/shared_importance.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kForeseenBatches = 16;
constexpr std::size_t kForeseenMax = 16384;

// Parameters of one epoch's begin, on which ranks need not agree, and who listens: see
// docs/design/local-protocol.md.
constexpr std::array<std::pair<std::string_view, void (Sampler::*)(double)>, 2> kOfLastEpoch = {{
    {"accuracy", &Sampler::on_quality},
    {"waiting", &Sampler::on_waiting},
}};

bool is_of_last_epoch(const local::Parameter& parameter) {
    return std::ranges::any_of(
        kOfLastEpoch, [&parameter](const auto& entry) { return entry.first == parameter.name; });
}

// Not a sample of any dataset.
constexpr SampleIndex kNoSample = std::numeric_limits<SampleIndex>::max();

static_assert(
    static_cast<int>(local::DrawKind::kImportant) == static_cast<int>(Draw::Kind::kImportant) &&
        static_cast<int>(local::DrawKind::kUnimportant) ==
            static_cast<int>(Draw::Kind::kUnimportant) &&
        static_cast<int>(local::DrawKind::kSubstituted) ==
            static_cast<int>(Draw::Kind::kSubstituted) &&
        static_cast<int>(local::DrawKind::kRepeated) == static_cast<int>(Draw::Kind::kRepeated),
    "kinds travel as they are");

Status check(const local::Begin& begin, const SamplingDesk::Limits& limits) {
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

SamplerOrder order_of(const local::Begin& begin) {
    SamplerOrder order;
    order.contract = begin.contract;
    order.seed = begin.seed;
    order.ranks = begin.world_size;
    order.batch = std::clamp(begin.batch, 1U, local::kDrawSamplesMax);
    order.parameters = begin.parameters;
    std::erase_if(order.parameters, is_of_last_epoch);
    std::ranges::sort(order.parameters, {}, &local::Parameter::name);
    return order;
}

// Without replacement, what was served before is known by name; with it only by number.
bool is_exactly_once(const SamplerOrder& order) {
    return order.contract == "windowed";
}

std::vector<bool> unpack(const std::vector<std::byte>& bits, std::uint32_t count) {
    std::vector<bool> set(bits.empty() ? 0 : count);
    for (std::size_t i = 0; i < set.size() && i / 8 < bits.size(); ++i) {
        set[i] = (static_cast<unsigned>(bits[i / 8]) >> (i % 8) & 1U) != 0;
    }
    return set;
}

}  // namespace

SamplingDesk::SamplingDesk(
    const Residency& node, std::uint32_t sample_count, SamplerSource& source, Limits limits)
    : node_(node),
      sample_count_(sample_count),
      source_(source),
      limits_(limits),
      paid_(sample_count) {}

void SamplingDesk::on_stored(SampleIndex sample, bool kept) {
    source_.on_stored(sample, kept);
    for (auto& [name, job] : jobs_) {
        job.sampler->on_stored(sample);
    }
}

void SamplingDesk::on_gone(SampleIndex sample) {
    paid_[sample] = false;
    source_.on_gone(sample);
}

Result<local::Begun> SamplingDesk::begin(
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
        readers_.erase(taken->second);
    }
    if (job->ranks.empty()) {
        source_.importance().set_active(*job->sampler, key_of(begin), true);
    }
    tell_of_last_epoch(*job, begin);
    job->ranks[begin.rank] = stream;
    job->last_used = ++uses_;
    Reader& reader = readers_[stream];
    reader.job = key_of(begin);
    reader.sidecar = sidecar;
    reader.rank = begin.rank;
    reader.epoch = begin.epoch;
    reader.horizon = std::clamp(
        kForeseenBatches * std::size_t{job->order.batch},
        limits_.horizon,
        std::max(limits_.horizon, kForeseenMax));
    begin_epoch(*job, reader, begin, unpack(state.served, sample_count_));
    source_.importance().on_epoch(*job->sampler, begin.epoch);
    return local::Begun{begin.epoch, job->losses};
}

void SamplingDesk::begin_epoch(
    const Job& job, Reader& reader, const local::Begin& begin, std::vector<bool> served) const {
    const auto skip = std::min(begin.skip, std::uint64_t{sample_count_} * 4);
    if (is_exactly_once(job.order)) {
        reader.served = std::move(served);
        job.sampler->begin_epoch(begin.rank, begin.epoch, 0);
    } else if (served.empty()) {
        job.sampler->begin_epoch(begin.rank, begin.epoch, skip);
    } else {
        job.sampler->resume_epoch(begin.rank, begin.epoch, skip, served);
    }
}

// What the first rank of an epoch brings counts: the ranks have one model, and one sampler, which
// moves on when the first of them begins.
void SamplingDesk::tell_of_last_epoch(Job& job, const local::Begin& begin) {
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

std::string SamplingDesk::key_of(const local::Begin& begin) const {
    return source_.is_per_rank(begin.contract) ? fmt::format("{}#{}", begin.job, begin.rank)
                                               : begin.job;
}

Result<SamplingDesk::Job*> SamplingDesk::job_for(
    const local::Begin& begin, const std::string& snapshot, Party party) {
    SamplerOrder order = order_of(begin);
    order.party = party;
    const std::string key = key_of(begin);
    const auto found = jobs_.find(key);
    if (found != jobs_.end() && found->second.order == order) {
        return &found->second;
    }
    if (found != jobs_.end() && !found->second.ranks.empty()) {
        return fail(
            ErrorCode::kConflict,
            fmt::format(
                "other ranks of job '{}' read under contract '{}' with seed {} in a world of {}, "
                "or with other parameters",
                begin.job,
                found->second.order.contract,
                found->second.order.seed,
                found->second.order.ranks));
    }
    STOKER_TRY(auto sampler, make_sampler(order, begin.rank));
    jobs_.erase(key);
    STOKER_TRY_VOID(make_place(order));
    if (!snapshot.empty() && !sampler->restore(snapshot)) {
        STOKER_TRY(sampler, make_sampler(order, begin.rank));  // it may have taken half of it
    }
    for (SampleIndex sample = 0; sample < sample_count_; ++sample) {
        if (node_.is_stored(sample)) {
            sampler->on_stored(sample);
        }
    }
    Job& job = jobs_[key];
    job.order = std::move(order);
    job.sampler = std::move(sampler);
    return &job;
}

void SamplingDesk::leave(StreamId stream) {
    const auto reader = readers_.find(stream);
    if (reader == readers_.end()) {
        return;
    }
    Job& job = jobs_.at(reader->second.job);
    job.ranks.erase(reader->second.rank);
    if (job.ranks.empty()) {
        source_.importance().set_active(*job.sampler, reader->second.job, false);
    }
    readers_.erase(reader);
}

Result<const SamplingDesk::Reader*> SamplingDesk::reader_of(
    StreamId stream, std::uint64_t epoch) const {
    const auto reader = readers_.find(stream);
    if (reader == readers_.end()) {
        return fail(
            ErrorCode::kConflict,
            "nothing was begun here, or another process of the job has taken the rank over");
    }
    if (reader->second.epoch != epoch) {
        return fail(
            ErrorCode::kConflict,
            fmt::format("epoch {} was begun, not {}", reader->second.epoch, epoch));
    }
    return &reader->second;
}

Result<local::Drawn> SamplingDesk::draw(StreamId stream, const local::Draw& draw) {
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
            fmt::format("{} samples were drawn and not read", reader.unread_total));
    }
    Job& job = jobs_.at(reader.job);
    job.last_used = ++uses_;
    const auto draws = draw_new(reader, job, draw.count);
    source_.importance().on_drawn(*job.sampler, draws);
    note_drawn(reader, draws);
    return answer_of(reader, draws);
}

// Draws, leaving out what was served before this epoch was begun here.
std::vector<Draw> SamplingDesk::draw_new(Reader& reader, Job& job, std::size_t count) {
    std::vector<Draw> draws;
    while (draws.size() < count && !reader.ended) {
        const std::size_t before = draws.size();
        job.sampler->draw(reader.rank, count - before, draws);
        reader.ended = draws.size() < count;
        if (!reader.served.empty()) {
            const auto again = std::ranges::remove_if(
                draws.begin() + static_cast<std::ptrdiff_t>(before),
                draws.end(),
                [&reader](const Draw& draw) { return reader.served[draw.served]; });
            draws.erase(again.begin(), again.end());
        }
    }
    return draws;
}

void SamplingDesk::note_drawn(Reader& reader, const std::vector<Draw>& draws) {
    for (const Draw& draw : draws) {
        reader.unread.push_back(draw.served);
        ++reader.unread_counts[draw.served];
        ++reader.unread_total;
        if (reader.foreseen_drawn < reader.foreseen.size() &&
            reader.foreseen[reader.foreseen_drawn] == draw.served) {
            ++reader.foreseen_drawn;
        } else {
            reader.stale_plan = true;
        }
    }
    const std::size_t ahead = reader.foreseen.size() - reader.foreseen_drawn;
    if (!reader.ended && ahead < reader.foreseen.size() / 2) {
        reader.stale_plan = true;
    }
}

local::Drawn SamplingDesk::answer_of(const Reader& reader, const std::vector<Draw>& draws) {
    local::Drawn drawn;
    drawn.epoch = reader.epoch;
    drawn.ended = reader.ended;
    for (const Draw& draw : draws) {
        drawn.requested.push_back(draw.requested);
        drawn.served.push_back(draw.served);
        const auto kind = static_cast<std::uint8_t>(draw.kind);
        drawn.kinds.push_back(paid_[draw.served] ? kind | local::kKindOnNode : kind);
        paid_[draw.served] = true;
    }
    return drawn;
}

void SamplingDesk::on_losses(StreamId stream, const local::Losses& losses) {
    const auto found = readers_.find(stream);
    if (found == readers_.end() || found->second.epoch != losses.epoch) {
        return;
    }
    const auto samples = samples_of(losses.samples);
    Job& job = jobs_.at(found->second.job);
    job.losses += samples.size();
    job.sampler->on_losses(found->second.rank, samples, losses.losses);
    source_.importance().on_losses(*job.sampler, samples);
}

std::vector<SampleIndex> SamplingDesk::samples_of(std::span<const std::uint64_t> ids) const {
    std::vector<SampleIndex> samples(ids.size());
    std::ranges::transform(ids, samples.begin(), [this](std::uint64_t id) {
        return id < sample_count_ ? static_cast<SampleIndex>(id) : kNoSample;
    });
    return samples;
}

void SamplingDesk::on_similarity(StreamId stream, const local::Similarity& similarity) {
    if (const auto reader = readers_.find(stream); reader != readers_.end()) {
        jobs_.at(reader->second.job)
            .sampler->on_similarity(samples_of(similarity.samples), similarity.hashes);
    }
}

void SamplingDesk::on_read(std::optional<StreamId> stream, std::span<const SampleIndex> samples) {
    const auto reader = stream ? readers_.find(*stream) : readers_.end();
    for (const SampleIndex sample : samples) {
        paid_[sample] = paid_[sample] || node_.is_stored(sample);
        if (reader == readers_.end()) {
            continue;
        }
        const auto count = reader->second.unread_counts.find(sample);
        if (count != reader->second.unread_counts.end()) {
            --reader->second.unread_total;
            if (--count->second == 0) {
                reader->second.unread_counts.erase(count);
            }
        }
    }
}

Result<local::EpochTally> SamplingDesk::tally(StreamId stream, std::uint64_t epoch) const {
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

Result<local::Snapshot> SamplingDesk::snapshot(StreamId stream) const {
    const auto reader = readers_.find(stream);
    if (reader == readers_.end()) {
        return fail(ErrorCode::kConflict, "nothing was begun here");
    }
    const std::string state = jobs_.at(reader->second.job).sampler->snapshot();
    const auto raw = std::as_bytes(std::span{state});
    return local::Snapshot{{raw.begin(), raw.end()}};
}

std::optional<std::vector<SampleIndex>> SamplingDesk::new_plan(StreamId stream) {
    Reader& reader = readers_.at(stream);
    if (!std::exchange(reader.stale_plan, false)) {
        return std::nullopt;
    }
    auto left = reader.unread_counts;
    std::vector<SampleIndex> plan;
    // What was read went first; of a sample that was drawn twice the later draw is still to come.
    for (auto sample = reader.unread.rbegin(); sample != reader.unread.rend(); ++sample) {
        if (const auto count = left.find(*sample); count != left.end() && count->second > 0) {
            --count->second;
            plan.push_back(*sample);
        }
    }
    std::ranges::reverse(plan);
    reader.unread = plan;
    reader.foreseen.clear();
    reader.foreseen_drawn = 0;
    if (!reader.ended) {
        const Job& job = jobs_.at(reader.job);
        job.sampler->foresee(reader.rank, reader.horizon, reader.foreseen);
    }
    if (!reader.served.empty()) {
        std::erase_if(
            reader.foreseen, [&reader](SampleIndex sample) { return reader.served[sample]; });
    }
    plan.insert(plan.end(), reader.foreseen.begin(), reader.foreseen.end());
    return plan;
}

}  // namespace stoker::sidecar

#include "sidecar/core/sampling/importance_sampler.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Steps of a rebuild of the ranks that an epoch's beginning may take, some 10 ms.
constexpr std::uint64_t kRebuildAtOnce = std::uint64_t{1} << 18U;

// Steps per draw after that. A rebuild takes four a sample, so with one rank it is over after half
// an epoch at most.
constexpr std::uint64_t kRebuildPerDraw = 8;

// Looks for a stand-in that one request may cost, in the pool and in packages. Packages are walked
// once an epoch, so that all requests together look at no sample twice.
constexpr std::uint32_t kPoolLooks = 8;
constexpr std::uint32_t kPackageLooks = 256;

Status check(std::uint32_t count, const ImportanceSettings& settings) {
    const auto refuse = [](const char* text) { return fail(ErrorCode::kInvalidArgument, text); };
    if (count == 0) {
        return refuse("the dataset is empty");
    }
    if (!(settings.beta >= 0) || !std::isfinite(settings.beta)) {
        return refuse("beta: must be 0 or more");
    }
    if (!(settings.h_share > 0) || settings.h_share > 1) {
        return refuse("hShare: must be above 0 and at most 1");
    }
    if (settings.reuse_factor == 0) {
        return refuse("reuse_factor: must be at least 1");
    }
    if (settings.loss_history == 0 || settings.package == 0 || settings.horizon == 0) {
        return refuse("ring, package, horizon: must be at least 1");
    }
    if (settings.world.ranks == 0) {
        return refuse("ranks: must be at least 1");
    }
    return {};
}

ImportanceWalkSettings walk_settings(const ImportanceSettings& settings) {
    return {
        .seed = settings.seed,
        .ranks = settings.world.ranks,
        .beta = settings.beta,
        .h_share = settings.h_share,
        .loss_history = settings.loss_history};
}

}  // namespace

Result<std::unique_ptr<ImportanceSampler>> ImportanceSampler::create(
    const Residency& node, std::uint32_t count, const ImportanceSettings& settings) {
    STOKER_TRY_VOID(check(count, settings));
    return std::unique_ptr<ImportanceSampler>(new ImportanceSampler(node, count, settings));
}

ImportanceSampler::ImportanceSampler(
    const Residency& node, std::uint32_t count, const ImportanceSettings& settings)
    : node_(node),
      settings_(settings),
      important_from_(ImportanceWalk::important_from(settings.beta, settings.h_share)),
      losses_(count),
      pooled_(count, false) {}

ImportanceSampler::Reader::Reader(
    std::uint32_t count, const ImportanceSettings& settings, std::uint32_t rank)
    : walk(count, walk_settings(settings), rank),
      served(count, false),
      promised(count, false),
      packages(count, settings.package) {}

ImportanceSampler::Reader& ImportanceSampler::reader_of(std::uint32_t rank) {
    STOKER_CHECK(rank < settings_.world.ranks, "a rank is below the number of ranks");
    return readers_.try_emplace(rank, losses_.count(), settings_, rank).first->second;
}

void ImportanceSampler::on_stored(SampleIndex sample) {
    if (!pooled_[sample] && is_unimportant(sample)) {
        pooled_[sample] = true;
        pool_.push_back(sample);
    }
}

bool ImportanceSampler::is_full(std::uint64_t epoch) const {
    return epoch < settings_.warmup || epoch % settings_.reuse_factor == 0;
}

void ImportanceSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    restart(open_epoch(rank, epoch));
    skip_draws(rank, skip);
}

void ImportanceSampler::resume_epoch(
    std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip, const std::vector<bool>& served) {
    STOKER_CHECK(served.size() == losses_.count(), "one flag a sample");
    Reader& reader = open_epoch(rank, epoch);
    restart(reader, ResumedEpoch{served, skip, reader.walk.steps_max()});
}

ImportanceSampler::Reader& ImportanceSampler::open_epoch(std::uint32_t rank, std::uint64_t epoch) {
    Reader& reader = reader_of(rank);
    if (reader.begun && reader.walk.epoch() == epoch) {
        reader.walk.rewind();
    } else {
        rebuild_ranks(epoch);
        const bool wants_losses = !is_full(epoch);
        reader.walk.begin(epoch, !wants_losses || losses_.known() == 0, losses_);
    }
    return reader;
}

void ImportanceSampler::rebuild_ranks(std::uint64_t epoch) {
    if (epoch + 1 <= rebuilt_for_) {
        return;
    }
    rebuilt_for_ = epoch + 1;
    if (losses_.known() > 0) {
        losses_.start();
        losses_.advance(kRebuildAtOnce);
    }
}

// Whatever was planned is forgotten; what has been decided in this epoch is not.
void ImportanceSampler::restart(Reader& reader, std::optional<ResumedEpoch> resumed) {
    const std::uint64_t epoch = reader.walk.epoch();
    reader.begun = true;
    reader.ahead.clear();
    reader.all_planned = false;
    reader.promised.assign(losses_.count(), false);
    reader.packages.begin(settings_.seed, epoch);
    reader.pool_cursor = 0;
    reader.report = {};
    reader.report.epoch = epoch;
    reader.report.exact_fallback = reader.walk.full() && !is_full(epoch);
    if (resumed) {
        reader.served = resumed->had();
        resumed->count_had(reader.report);
    } else {
        reader.served.assign(losses_.count(), false);
    }
    reader.resumed = std::move(resumed);
    plan_ahead(reader, settings_.horizon);
}

void ImportanceSampler::plan_ahead(Reader& reader, std::size_t count) {
    while (count > 0 && !reader.all_planned) {
        const auto step = next_step(reader);
        if (!step) {
            reader.all_planned = true;
            return;
        }
        Planned planned{.step = *step};
        if (settings_.substitute && !step->important) {
            promise_stand_in(reader, planned);
        }
        if (reader.resumed && !planned.has_stand_in && reader.resumed->had(step->sample)) {
            leave_out(reader, *step);
            continue;
        }
        if (reader.resumed) {
            reader.resumed->take();
        }
        reader.promised[planned.has_stand_in ? planned.stand_in : step->sample] = true;
        reader.ahead.push_back(planned);
        --count;
    }
}

// In a resumed epoch only the rest of it: see ResumedEpoch.
std::optional<ImportanceWalk::Step> ImportanceSampler::next_step(Reader& reader) {
    if (!reader.resumed) {
        return reader.walk.next(losses_);
    }
    while (!reader.resumed->has_ended()) {
        const auto step = reader.walk.next(losses_);
        if (!step) {
            return std::nullopt;
        }
        const bool may_get_another = settings_.substitute && !step->important;
        if (!reader.resumed->settle(step->sample, may_get_another)) {
            return step;
        }
        reader.report.skipped += static_cast<std::uint64_t>(std::int64_t{step->left_out});
    }
    return std::nullopt;
}

// It was read before, and nothing stands in for it: another step will be taken in its place.
void ImportanceSampler::leave_out(Reader& reader, const ImportanceWalk::Step& step) {
    reader.walk.give_back();
    reader.report.skipped += static_cast<std::uint64_t>(std::int64_t{step.left_out});
}

bool ImportanceSampler::is_unimportant(SampleIndex sample) const {
    return losses_.ranks()[sample] < important_from_;  // 1 where nobody has measured it
}

bool ImportanceSampler::is_fresh(const Reader& reader, SampleIndex sample) const {
    return !reader.served[sample] && !reader.promised[sample];
}

// An L-request for what is not here: settles what to load for it, or to take from what is here.
void ImportanceSampler::promise_stand_in(Reader& reader, Planned& planned) {
    if (node_.is_stored(planned.step.sample) && is_fresh(reader, planned.step.sample)) {
        return;
    }
    planned.has_stand_in = take_from_pool(reader, planned.stand_in);
    if (!planned.has_stand_in) {
        const auto wanted = [this, &reader](SampleIndex sample) {
            return is_unimportant(sample) && !node_.is_stored(sample) && is_fresh(reader, sample) &&
                   reader.walk.owns(sample);
        };
        const auto found = reader.packages.next(wanted, kPackageLooks);
        planned.has_stand_in = found.has_value();
        planned.stand_in = found.value_or(0);
    }
}

bool ImportanceSampler::take_from_pool(Reader& reader, SampleIndex& sample) {
    const std::size_t looks = std::min<std::size_t>(kPoolLooks, pool_.size());
    for (std::size_t look = 0; look < looks && !pool_.empty(); ++look) {
        reader.pool_cursor = reader.pool_cursor < pool_.size() ? reader.pool_cursor : 0;
        SampleIndex& candidate = pool_[reader.pool_cursor];
        if (!node_.is_stored(candidate) || !is_unimportant(candidate)) {
            pooled_[candidate] = false;
            candidate = pool_.back();
            pool_.pop_back();
            continue;
        }
        ++reader.pool_cursor;
        if (is_fresh(reader, candidate) && reader.walk.owns(candidate)) {
            sample = candidate;
            return true;
        }
    }
    return false;
}

void ImportanceSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Reader& reader = reader_of(rank);
    losses_.advance(kRebuildPerDraw * count);
    for (; count > 0; --count) {
        plan_ahead(reader, 1);
        if (reader.ahead.empty()) {
            return;
        }
        const Planned planned = reader.ahead.front();
        reader.ahead.pop_front();
        Draw draw = serve(reader, planned);
        count_draw(reader, planned, draw);
        draws.push_back(draw);
        if (reader.ahead.empty() && reader.all_planned) {
            reader.report.skipped += reader.walk.left_out_at_end();
        }
    }
}

Draw ImportanceSampler::serve(Reader& reader, const Planned& planned) {
    const SampleIndex sample = planned.step.sample;
    reader.promised[planned.has_stand_in ? planned.stand_in : sample] = false;
    if (reader.walk.full()) {
        return {sample, sample, Draw::Kind::kPlain};
    }
    if (planned.step.important) {
        return {sample, sample, Draw::Kind::kImportant};
    }
    const auto here = [this, &reader](SampleIndex candidate) {
        return node_.is_stored(candidate) && !reader.served[candidate];
    };
    SampleIndex other = planned.stand_in;
    // Late or not: a sample that was read before the break is counted already.
    const bool is_again = reader.resumed && reader.resumed->had(sample);
    if (planned.has_stand_in && (here(other) || (is_again && !reader.served[other]))) {
        return {sample, other, Draw::Kind::kSubstituted};
    }
    if (settings_.substitute && !here(sample) && take_from_pool(reader, other)) {
        return {sample, other, Draw::Kind::kSubstituted};
    }
    return {sample, sample, Draw::Kind::kUnimportant};
}

void ImportanceSampler::count_draw(Reader& reader, const Planned& planned, Draw& draw) {
    EpochReport& report = reader.report;
    report.skipped += static_cast<std::uint64_t>(std::int64_t{planned.step.left_out});
    if (reader.served[draw.served]) {
        draw.kind = Draw::Kind::kRepeated;
    }
    report.count(draw);
    reader.served[draw.served] = true;
}

void ImportanceSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const auto found = readers_.find(rank);
    if (found == readers_.end()) {
        return;
    }
    const auto& ahead = found->second.ahead;
    const auto end = ahead.begin() + static_cast<std::ptrdiff_t>(std::min(count, ahead.size()));
    std::transform(ahead.begin(), end, std::back_inserter(samples), [](const Planned& planned) {
        return planned.has_stand_in ? planned.stand_in : planned.step.sample;
    });
}

void ImportanceSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> samples, std::span<const float> losses) {
    const std::uint64_t used = learn(losses_, samples, losses);
    // A rank of another node, whose losses came through its sidecar, has its own report there.
    if (const auto reader = readers_.find(rank); reader != readers_.end()) {
        reader->second.report.count_losses(used, samples.size(), losses.size());
    }
}

EpochReport ImportanceSampler::report(std::uint32_t rank) const {
    const auto found = readers_.find(rank);
    return found == readers_.end() ? EpochReport{} : found->second.report;
}

std::span<const float> ImportanceSampler::relative_importance() const {
    return losses_.ranks();
}

std::size_t ImportanceSampler::memory_bytes() const {
    std::size_t bytes =
        sizeof(*this) + losses_.memory_bytes() + pool_.capacity() * sizeof(pool_[0]);
    bytes += pooled_.capacity() / 8;
    for (const auto& [rank, reader] : readers_) {
        bytes += sizeof(reader) + reader.walk.memory_bytes() +
                 (reader.served.capacity() + reader.promised.capacity()) / 8 +
                 reader.ahead.size() * sizeof(Planned);
    }
    return bytes;
}

}  // namespace stoker::sidecar

#include "sidecar/core/sampling/importance_sampler.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Rebuild steps done at once when an epoch begins; they take some 10 ms.
constexpr std::uint64_t kRebuildAtOnce = std::uint64_t{1} << 18U;

// Rebuild steps per draw after that. A rebuild takes four steps per sample, so with one rank it
// ends within half an epoch.
constexpr std::uint64_t kRebuildPerDraw = 8;

// Samples that one request may examine to find a stand-in: among the stored ones (`pool_`) and
// among neighbours in the dataset's order (`packages`). The neighbours are walked once per epoch,
// so all requests of an epoch together examine each neighbour at most once.
constexpr std::uint32_t kPoolLooks = 8;
constexpr std::uint32_t kPackageLooks = 256;

}  // namespace

Result<std::unique_ptr<ImportanceSampler>> ImportanceSampler::create(
    const Residency& node,
    std::uint32_t count,
    const SamplerSettings& settings,
    const Tuning& tuning) {
    STOKER_TRY_VOID(settings.check(count));
    if (settings.number("hShare") == 0) {
        return fail(ErrorCode::kInvalidArgument, "hShare: must be above 0 and at most 1");
    }
    return std::unique_ptr<ImportanceSampler>(new ImportanceSampler(node, count, settings, tuning));
}

ImportanceSampler::ImportanceSampler(
    const Residency& node,
    std::uint32_t count,
    const SamplerSettings& settings,
    const Tuning& tuning)
    : node_(node),
      settings_(settings),
      substitute_(settings.number("substitute") != 0),
      tuning_(tuning),
      important_from_(
          ImportanceWalk::important_from(settings.number("beta"), settings.number("hShare"))),
      losses_(count),
      pooled_(count, false),
      refill_from_(count),
      pool_luck_(settings.seed) {}

ImportanceSampler::Reader::Reader(
    std::uint32_t count, const SamplerSettings& settings, std::uint32_t rank)
    : walk(count, settings, rank) {}

ImportanceSampler::Reader& ImportanceSampler::reader_of(std::uint32_t rank) {
    STOKER_CHECK(rank < settings_.ranks, "the rank must be below the number of ranks");
    return readers_.try_emplace(rank, losses_.count(), settings_, rank).first->second;
}

void ImportanceSampler::on_stored(SampleIndex sample) {
    if (substitute_ && !pooled_[sample] && is_unimportant(sample)) {
        pooled_[sample] = true;
        pool_.push_back(sample);
    }
}

void ImportanceSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    restart(open_epoch(rank, epoch));
    skip_draws(rank, skip);
}

void ImportanceSampler::resume_epoch(
    std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip, const std::vector<bool>& served) {
    STOKER_CHECK(served.size() == losses_.count(), "`served` must have one flag per sample");
    Reader& reader = open_epoch(rank, epoch);
    restart(reader, ResumedEpoch{served, skip, reader.walk.share().steps_max()});
}

ImportanceSampler::Reader& ImportanceSampler::open_epoch(std::uint32_t rank, std::uint64_t epoch) {
    Reader& reader = reader_of(rank);
    if (reader.begun && reader.walk.share().epoch() == epoch) {
        reader.walk.share().rewind();
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
        advance_ranks(kRebuildAtOnce);
    }
}

// Advances the rebuild of the samples' importance ranks. After the rebuild, residents that have
// become unimportant join `pool_`, the stored stand-ins, at random places: the stand-ins of
// neighbouring draws should not be neighbours.
void ImportanceSampler::advance_ranks(std::uint64_t steps) {
    if (!losses_.advance(steps)) {
        return;
    }
    if (std::exchange(pool_revision_, losses_.revision()) != losses_.revision()) {
        refill_from_ = 0;
    }
    for (; substitute_ && steps > 0 && refill_from_ < losses_.count(); --steps, ++refill_from_) {
        if (is_unimportant(refill_from_) && !pooled_[refill_from_] &&
            node_.is_stored(refill_from_)) {
            on_stored(refill_from_);
            std::swap(pool_.back(), pool_[pool_luck_.below(pool_.size())]);
        }
    }
}

// Discards the plan; keeps this epoch's decisions.
void ImportanceSampler::restart(Reader& reader, std::optional<ResumedEpoch> rest) {
    const std::uint64_t epoch = reader.walk.share().epoch();
    reader.begin(losses_.count(), epoch, std::move(rest));
    reader.report.exact_fallback = reader.walk.full() && !is_full(epoch);
    reader.begun = true;
    reader.ahead.clear();
    reader.all_planned = false;
    reader.promised.assign(losses_.count(), false);
    reader.packages = PackageCursor(losses_.count(), tuning_.package, settings_.seed, epoch);
    reader.pool_cursor = 0;
    plan_ahead(reader, tuning_.horizon);
}

void ImportanceSampler::plan_ahead(Reader& reader, std::size_t count) {
    while (count > 0 && !reader.all_planned) {
        const auto step = next_step(reader);
        if (!step) {
            reader.all_planned = true;
            return;
        }
        Planned planned{.step = *step, .stand_in = {}};
        if (may_substitute(*step)) {
            promise_stand_in(reader, planned);
        }
        if (!planned.stand_in && reader.had(step->sample)) {
            reader.walk.share().give_back();  // another step will be taken instead
            reader.leave_out(step->left_out);
            continue;
        }
        if (reader.resumed) {
            reader.resumed->take();
        }
        reader.promised[planned.expected()] = true;
        reader.ahead.push_back(planned);
        --count;
    }
}

std::optional<ImportanceWalk::Step> ImportanceSampler::next_step(Reader& reader) {
    return reader.next_left(
        [this, &reader] { return reader.walk.next(losses_); },
        [this](const ImportanceWalk::Step& step) { return may_substitute(step); });
}

bool ImportanceSampler::may_substitute(const ImportanceWalk::Step& step) const {
    return substitute_ && !step.important;
}

bool ImportanceSampler::is_unimportant(SampleIndex sample) const {
    return losses_.ranks()[sample] < important_from_;  // 1: no loss yet
}

bool ImportanceSampler::is_fresh(const Reader& reader, SampleIndex sample) const {
    return !reader.served[sample] && !reader.promised[sample];
}

// For a request for an unimportant sample that is absent or was already read: decides which stored
// stand-in to use, or which stand-in to load.
void ImportanceSampler::promise_stand_in(Reader& reader, Planned& planned) {
    if (node_.is_stored(planned.step.sample) && is_fresh(reader, planned.step.sample)) {
        return;
    }
    planned.stand_in = take_from_pool(reader);
    if (!planned.stand_in) {
        const auto wanted = [this, &reader](SampleIndex sample) {
            return is_unimportant(sample) && !node_.is_stored(sample) && is_fresh(reader, sample) &&
                   reader.walk.share().owns(sample);
        };
        planned.stand_in = reader.packages.next(wanted, kPackageLooks);
    }
}

std::optional<SampleIndex> ImportanceSampler::take_from_pool(Reader& reader) {
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
        if (is_fresh(reader, candidate) && reader.walk.share().owns(candidate)) {
            return candidate;
        }
    }
    return std::nullopt;
}

void ImportanceSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Reader& reader = reader_of(rank);
    advance_ranks(kRebuildPerDraw * count);
    for (; count > 0; --count) {
        plan_ahead(reader, 1);
        if (reader.ahead.empty()) {
            reader.end(reader.walk.share().turns());
            return;
        }
        const Planned planned = reader.ahead.front();
        reader.ahead.pop_front();
        Draw draw = serve(reader, planned);
        reader.leave_out(planned.step.left_out);
        reader.count(draw);
        draws.push_back(draw);
    }
}

Draw ImportanceSampler::serve(Reader& reader, const Planned& planned) {
    const SampleIndex sample = planned.step.sample;
    reader.promised[planned.expected()] = false;
    if (reader.walk.full()) {
        return {sample, sample, Draw::Kind::kPlain};
    }
    if (planned.step.important) {
        return {sample, sample, Draw::Kind::kImportant};
    }
    const auto here = [this, &reader](SampleIndex candidate) {
        return node_.is_stored(candidate) && !reader.served[candidate];
    };
    // In a resumed epoch the trainer may have read the sample itself before the interruption; then
    // it gets the stand-in even if that is not stored yet.
    if (const auto other = planned.stand_in;
        other && (here(*other) || (reader.had(sample) && !reader.served[*other]))) {
        return {sample, *other, Draw::Kind::kSubstituted};
    }
    if (substitute_ && !here(sample)) {
        if (const auto other = take_from_pool(reader)) {
            return {sample, *other, Draw::Kind::kSubstituted};
        }
    }
    return {sample, sample, Draw::Kind::kUnimportant};
}

void ImportanceSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const auto found = readers_.find(rank);
    if (found == readers_.end()) {
        return;
    }
    const auto& ahead = found->second.ahead;
    const auto end = ahead.begin() + static_cast<std::ptrdiff_t>(std::min(count, ahead.size()));
    std::transform(
        ahead.begin(), end, std::back_inserter(samples), std::mem_fn(&Planned::expected));
}

void ImportanceSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> samples, std::span<const float> losses) {
    const std::uint64_t used = learn(losses_, samples, losses);
    // Counts the report only if the rank reads here: the losses of ranks on other nodes are counted
    // there.
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

ReadCurve ImportanceSampler::read_curve() const {
    return {settings_.number("beta"), 1 / settings_.number("reuseFactor")};
}

}  // namespace stoker::sidecar

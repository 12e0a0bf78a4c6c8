#include "tests/world/origin_site.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "sidecar/core/refusals.h"

namespace stoker::world {

namespace {

constexpr Duration kAskStalledAgain = std::chrono::milliseconds{50};

}  // namespace

OriginSite::OriginSite(Schedule& schedule, Oracle& oracle)
    : schedule_(schedule),
      oracle_(oracle) {
    for (std::uint64_t id = 0; id < oracle.sample_count(); ++id) {
        ids_.emplace(oracle.dataset().manifest().sample(domain::SampleId{id}).key, id);
    }
}

void OriginSite::fetch(
    Program& reader,
    const std::string& pod,
    const sidecar::OriginFetch& wanted,
    const Answer& done) {
    const double seconds = static_cast<double>(wanted.size_bytes) / weather.bytes_per_second;
    const TimePoint begins = std::max(schedule_.now(), link_free_at_);
    link_free_at_ = begins + Duration{static_cast<Duration::rep>(seconds * 1e9)};
    const Duration latency = schedule_.draw(weather.latency / 2, 2 * weather.latency);
    reader.run_in(link_free_at_ - schedule_.now() + latency, [this, &reader, pod, wanted, done] {
        answer(reader, pod, wanted, done);
    });
}

std::vector<std::byte> OriginSite::bytes_of(const sidecar::OriginFetch& wanted) const {
    const auto payload = std::span{oracle_.payload(ids_.at(wanted.key))};
    const auto bytes =
        wanted.slice ? payload.subspan(wanted.slice->offset, wanted.size_bytes) : payload;
    return {bytes.begin(), bytes.end()};
}

void OriginSite::answer(
    Program& reader,
    const std::string& pod,
    const sidecar::OriginFetch& wanted,
    const Answer& done) {
    if (weather.is_stalled) {
        reader.run_in(kAskStalledAgain, [this, &reader, pod, wanted, done] {
            answer(reader, pod, wanted, done);
        });
    } else if (auto error = judge_answer(pod)) {
        done(fail(*std::move(error)));
    } else {
        done(sidecar::OriginBytes{bytes_of(wanted), {}, 1});
    }
}

std::optional<Error> OriginSite::judge(const std::string& pod) {
    if (weather.refused.contains(pod) || keyless.contains(pod)) {
        return Error{ErrorCode::kForbidden, "403: the key is refused"};
    }
    if (schedule_.draw_chance(weather.failing)) {
        return Error{ErrorCode::kUnavailable, "503: slow down"};
    }
    return std::nullopt;
}

// Sometimes the origin returns another object than it listed ("lies"). The error is the one of
// S3Origin, which compares ETag, size and checksum with the listing.
std::optional<Error> OriginSite::judge_answer(const std::string& pod) {
    if (auto error = judge(pod)) {
        return error;
    }
    if (!schedule_.draw_chance(weather.lying)) {
        return std::nullopt;
    }
    switch (schedule_.luck().below(3)) {
        case 0:
            return Error{ErrorCode::kConflict, "another ETag than listed"};
        case 1:
            return Error{ErrorCode::kCorruption, "the bytes do not have their checksum"};
        default:
            return Error{ErrorCode::kNotFound, "404: deleted since the listing"};
    }
}

Result<domain::Listing> OriginSite::list(const std::string& pod) {
    ++oracle_.counts["listings"];
    if (auto error = judge(pod)) {
        return fail(*std::move(error));
    }
    domain::Listing objects;
    for (const auto& [key, id] : ids_) {
        const auto info = oracle_.dataset().manifest().sample(domain::SampleId{id});
        STOKER_TRY_VOID(objects.add(key, info.size_bytes, info.etag));
    }
    return objects;
}

SiteOrigin::SiteOrigin(
    OriginSite& site, Oracle& oracle, Program& reader, std::string pod, FetchWatch watch)
    : site_(site),
      oracle_(oracle),
      reader_(reader),
      pod_(std::move(pod)),
      watch_(std::move(watch)),
      self_(std::make_shared<SiteOrigin*>(this)) {}

SiteOrigin::~SiteOrigin() {
    while (!pending_.empty()) {
        end(pending_.begin()->first, fail(ErrorCode::kCancelled, "the origin shuts down"));
    }
}

Result<domain::Listing> SiteOrigin::list(
    const std::function<void(std::uint64_t)>& progress, std::stop_token stop) {
    if (stop.stop_requested()) {
        return fail(ErrorCode::kCancelled, "the listing was stopped");
    }
    auto objects = site_.list(pod_);
    if (objects) {
        progress(objects->size());
    }
    return objects;
}

void SiteOrigin::fetch(sidecar::OriginFetch request, OriginSite::Answer done) {
    const std::uint64_t id = ++last_;
    const bool is_leaders = watch_.leads();
    const std::string range =
        request.slice ? fmt::format("{} from {}", request.key, request.slice->offset) : request.key;
    if (is_leaders) {
        oracle_.begin_fetch(
            reader_.name(),
            fmt::format("{} on {}", range, watch_.node),
            watch_.is_on_node(site_.id_of(request.key)));
    } else {
        ++oracle_.counts["proofs of access"];
    }
    pending_[id] = {std::move(done), request.key, range, is_leaders};
    site_.fetch(
        reader_,
        pod_,
        request,
        [self = std::weak_ptr{self_}, id](Result<sidecar::OriginBytes> bytes) {
            if (const auto origin = self.lock()) {
                (*origin)->end(id, std::move(bytes));
            }
        });
}

void SiteOrigin::end(std::uint64_t id, Result<sidecar::OriginBytes> bytes) {
    const auto ended = pending_.extract(id);
    if (ended.mapped().is_leaders) {
        oracle_.end_fetch(fmt::format("{} on {}", ended.mapped().range, watch_.node));
        if (!bytes && sidecar::Refusals::is_refusal(bytes.error().code)) {
            site_.on_lie(pod_, site_.id_of(ended.mapped().key));
        }
        const bool is_refused = !bytes && bytes.error().code == ErrorCode::kForbidden;
        refused_in_row_ = is_refused && watch_.leads() ? refused_in_row_ + 1 : 0;
        if (refused_in_row_ > 0) {
            site_.on_refused(pod_, refused_in_row_);
        }
    }
    ended.mapped().done(std::move(bytes));
}

}  // namespace stoker::world

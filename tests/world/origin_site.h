#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sidecar/origin/origin.h"
#include "tests/world/oracle.h"
#include "tests/world/schedule.h"

namespace stoker::world {

// The origin of the world's dataset: one link that all readers share; `weather` has the link's
// present speed and faults. Sample bytes are always the dataset's. Not thread-safe.
class OriginSite {
public:
    using Answer = std::function<void(Result<sidecar::OriginBytes>)>;

    struct Weather {
        Duration latency{};
        double bytes_per_second = 1e8;
        double failing = 0;             // share of requests that end with kUnavailable
        bool is_stalled = false;        // answers wait until the stall ends
        std::set<std::string> refused;  // pods whose key gets 403
        double lying = 0;  // share of answers that are not as listed, and that the client notices
    };

    OriginSite(Schedule& schedule, Oracle& oracle);

    Weather weather;
    std::set<std::string> keyless;  // pods without a key

    // Reads an object, or a slice of it, for a process of `pod`. `done` runs like a task of one of its
    // threads.
    void fetch(
        Program& reader,
        const std::string& pod,
        const sidecar::OriginFetch& wanted,
        const Answer& done);

    Result<domain::Listing> list(const std::string& pod);

    // The origin refused a leader's fetch. `in_row`: refusals without a success between them, of
    // fetches that began while the sidecar led.
    std::function<void(const std::string& pod, std::uint32_t in_row)> on_refused;

    // A leader's fetch did not return the sample as it was listed.
    std::function<void(const std::string& pod, std::uint64_t sample)> on_lie;

    // Time until the link has sent everything that was requested.
    [[nodiscard]] Duration backlog() const {
        return std::max(Duration{}, link_free_at_ - schedule_.now());
    }

    // The id of an object, which must exist.
    [[nodiscard]] std::uint64_t id_of(const std::string& key) const { return ids_.at(key); }

private:
    void answer(
        Program& reader,
        const std::string& pod,
        const sidecar::OriginFetch& wanted,
        const Answer& done);
    [[nodiscard]] std::vector<std::byte> bytes_of(const sidecar::OriginFetch& wanted) const;
    [[nodiscard]] std::optional<Error> judge(const std::string& pod);
    [[nodiscard]] std::optional<Error> judge_answer(const std::string& pod);

    Schedule& schedule_;
    Oracle& oracle_;
    std::map<std::string, std::uint64_t, std::less<>> ids_;
    TimePoint link_free_at_{};
};

// A sidecar's fetches, for the oracle.
struct FetchWatch {
    std::string node;
    std::function<bool()>
        leads;  // whether the sidecar leads now; then the oracle counts its fetches
    std::function<bool(std::uint64_t sample)> is_on_node;  // and a leader may know it
};

// A sidecar's connection to the site.
class SiteOrigin final : public sidecar::Origin {
public:
    SiteOrigin(
        OriginSite& site, Oracle& oracle, Program& reader, std::string pod, FetchWatch watch);
    ~SiteOrigin() override;

    [[nodiscard]] std::string describe() const override { return "s3://bucket/train"; }

    [[nodiscard]] bool has_key() const override { return !site_.keyless.contains(pod_); }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override;
    void fetch(sidecar::OriginFetch request, OriginSite::Answer done) override;

private:
    struct Pending {
        OriginSite::Answer done;
        std::string key;
        std::string range;  // key and byte range, for the oracle
        bool is_leaders = false;
    };

    void end(std::uint64_t id, Result<sidecar::OriginBytes> bytes);

    OriginSite& site_;
    Oracle& oracle_;
    Program& reader_;
    std::string pod_;
    FetchWatch watch_;
    std::map<std::uint64_t, Pending> pending_;
    std::uint64_t last_ = 0;
    std::uint32_t refused_in_row_ = 0;
    std::shared_ptr<SiteOrigin*> self_;  // expires with this object
};

}  // namespace stoker::world

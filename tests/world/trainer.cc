#include "tests/world/trainer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/sampling/epoch_permutation.h"
#include "sidecar/core/sampling/exact_order.h"

namespace stoker::world {

namespace {

// The same timeout as in link.py and sources.py.
constexpr Duration kFetchTimeout = std::chrono::seconds{60};
constexpr Duration kPlanTimeout = std::chrono::seconds{30};
constexpr Duration kPatience = std::chrono::seconds{5};
constexpr Duration kAskAgain = std::chrono::milliseconds{50};
constexpr int kFetchRounds = 3;
constexpr std::uint64_t kWarmupEpochs = 2;  // under contract importance: they read everything

constexpr Duration kReadOriginAgain = std::chrono::milliseconds{500};
constexpr Duration kWaitForRanks = std::chrono::milliseconds{500};

UniqueFd seal(const void* data, std::size_t bytes) {
    UniqueFd memfd{::memfd_create("trainer", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    STOKER_CHECK(::write(memfd.get(), data, bytes) == static_cast<ssize_t>(bytes), "memfd");
    STOKER_CHECK(
        ::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0, "seal");
    return memfd;
}

local::Hello hello_of(const TrainerSettings& settings) {
    local::Hello hello;
    hello.pid = 1;
    hello.rank = settings.rank;
    hello.world_size = settings.ranks;
    hello.stream = settings.seed * 64 + settings.rank + 1;
    hello.dataset = "train";
    hello.client = settings.name;
    return hello;
}

}  // namespace

Trainer::Trainer(
    Schedule& schedule,
    const TrainerSettings& settings,
    test::FaultDevice& disk,
    OriginSite& site,
    Oracle& oracle,
    Progress& progress,
    TrainerCallbacks callbacks)
    : Program(schedule, settings.name),
      schedule_(schedule),
      settings_(settings),
      disk_(disk),
      site_(site),
      oracle_(oracle),
      progress_(progress),
      callbacks_(std::move(callbacks)),
      link_(
          schedule,
          loop(),
          settings.socket_path,
          hello_of(settings),
          {[this](const local::Welcome& welcome) { return on_welcome(welcome); },
           [this](const std::string& why, bool had_session) {
               if (why != "nobody listens") {
                   schedule_.say("lost its sidecar: " + why);
                   callbacks_.lost(had_session);
               }
           }}),
      timer_(loop()) {
    attach_first(loop().now() + kPatience);
}

// Waits for a sidecar that starts, and for its listing.
void Trainer::attach_first(TimePoint give_up) {
    if (link_.is_attached() || (!link_.is_pending() && loop().now() > give_up)) {
        begin_epoch();
        return;
    }
    if (!link_.is_pending()) {
        link_.hurry();
    }
    timer_.run_in(kAskAgain, [this, give_up] { attach_first(give_up); });
}

bool Trainer::on_welcome(const local::Welcome& welcome) {
    const domain::RevisionId revision{welcome.revision};
    if (revision != oracle_.dataset().manifest().revision()) {
        return false;
    }
    schedule_.say("attached to its sidecar");
    callbacks_.attached();
    if (node_ == nullptr) {
        node_ = std::make_unique<NodeView>(disk_, settings_.data_folder, revision);
    }
    node_->refresh();
    return true;
}

std::vector<std::uint64_t> Trainer::share(std::uint64_t epoch) const {
    const sidecar::EpochShape shape{
        static_cast<std::uint32_t>(oracle_.sample_count()), settings_.seed, settings_.ranks};
    if (settings_.contract == "importance") {
        std::vector<std::uint64_t> walk;
        const sidecar::EpochPermutation order{shape.count, settings_.seed, epoch};
        for (std::uint32_t turn = 0; turn < sidecar::rank_length(shape); ++turn) {
            walk.push_back(order.at((turn * settings_.ranks + settings_.rank) % shape.count));
        }
        return walk;
    }
    const auto order = sidecar::epoch_order(shape, epoch, settings_.rank);
    return {order.begin(), order.end()};
}

void Trainer::begin_epoch() {
    if (!callbacks_.may_begin()) {
        timer_.run_in(kWaitForRanks, [this] { begin_epoch(); });
        return;
    }
    if (settings_.reports_losses() && link_.is_attached() && begun_on_ == link_.attached_count()) {
        ask_snapshot();
    } else {
        start_epoch();
    }
}

// Asks for the sampler's state, from which a leader that does not know the job continues.
void Trainer::ask_snapshot() {
    link_.ask(local::AskSnapshot{}, kPlanTimeout, [this](std::optional<local::Message> answer) {
        if (auto* snapshot = answer ? std::get_if<local::Snapshot>(&*answer) : nullptr) {
            progress_.snapshot = std::move(snapshot->state);
        }
        start_epoch();
    });
}

void Trainer::start_epoch() {
    order_ = share(progress_.epoch);
    begun_on_ = planned_on_ = 0;
    next_batch();
}

// Reports an answer that is an error. The trainer continues without what it requested.
void Trainer::note_error(const char* request, const std::optional<local::Message>& answer) {
    if (const auto* error = answer ? std::get_if<local::ErrorReply>(&*answer) : nullptr) {
        schedule_.say(fmt::format("its sidecar refused {}: {}", request, error->message));
        callbacks_.refused(fmt::format("{} ({})", request, error->message), {});
    }
}

void Trainer::send_plan(const std::function<void()>& then) {
    planned_on_ = link_.attached_count();
    auto ids = order_;
    if (settings_.looks_ahead && progress_.epoch + 1 != settings_.epochs) {
        const auto next = share(progress_.epoch + 1);
        ids.insert(ids.end(), next.begin(), next.end());
    }
    link_.ask(
        local::Plan{progress_.epoch, order_.size(), progress_.drawn},
        kPlanTimeout,
        [this, then](const auto& answer) {
            note_error("a plan", answer);
            then();
        },
        seal(ids.data(), ids.size() * sizeof(ids[0])));
}

void Trainer::next_batch() {
    if (settings_.contract != "exact") {
        draw(0);
        return;
    }
    if (link_.is_attached() && planned_on_ != link_.attached_count()) {
        send_plan([this] { next_batch(); });
        return;
    }
    const std::uint64_t end = std::min(progress_.drawn + settings_.batch, order_.size());
    std::vector<std::uint64_t> ids{
        order_.begin() + static_cast<std::ptrdiff_t>(progress_.drawn),
        order_.begin() + static_cast<std::ptrdiff_t>(end)};
    take(std::move(ids), end == order_.size());
}

void Trainer::draw(int tries) {
    if (!link_.is_attached() || tries > 1) {
        draw_alone();
        return;
    }
    if (begun_on_ != link_.attached_count()) {
        begin_on_sidecar(tries);
        return;
    }
    link_.ask(
        local::Draw{progress_.epoch, settings_.batch},
        kPlanTimeout,
        [this, tries](std::optional<local::Message> answer) {
            if (const auto* drawn = answer ? std::get_if<local::Drawn>(&*answer) : nullptr) {
                take(drawn->served, drawn->ended);
                return;
            }
            note_error("a draw", answer);
            begun_on_ = 0;
            draw(answer ? tries + 1 : 2);
        });
}

void Trainer::begin_on_sidecar(int tries) {
    local::Begin begin;
    begin.epoch = progress_.epoch;
    begin.skip = progress_.drawn;
    begin.seed = settings_.seed;
    begin.rank = settings_.rank;
    begin.world_size = settings_.ranks;
    begin.batch = settings_.batch;
    begin.contract = settings_.contract;
    begin.job = settings_.job;
    std::vector<std::uint8_t> served((oracle_.sample_count() + 7) / 8);
    for (const auto& [id, times] : progress_.counts) {
        served[id / 8] |= static_cast<std::uint8_t>(1U << (id % 8));
    }
    begin.served_bytes = served.size();
    begin.snapshot_bytes = progress_.snapshot.size();
    if (settings_.contract == "importance") {
        begin.parameters = {{"warmupEpochs", kWarmupEpochs}, {"reuseFactor", 1000}};
    }
    for (const std::byte byte : progress_.snapshot) {
        served.push_back(static_cast<std::uint8_t>(byte));
    }
    link_.ask(
        begin,
        kPlanTimeout,
        [this, tries, count = link_.attached_count()](const auto& answer) {
            if (const auto* begun = answer ? std::get_if<local::Begun>(&*answer) : nullptr) {
                begun_on_ = count;
                oracle_.counts[fmt::format("losses of rank {}", settings_.rank)] = begun->losses;
                draw(tries);
                return;
            }
            note_error("a begin", answer);
            draw_alone();
        },
        seal(served.data(), served.size()));
}

// Draws without a sidecar. If the trainer has drawn samples twice, as many others stay unread.
void Trainer::draw_alone() {
    const std::uint64_t left = order_.size() - std::min(progress_.drawn, order_.size());
    std::vector<std::uint64_t> ids;
    for (const std::uint64_t id : order_) {
        if (ids.size() < std::min<std::uint64_t>(settings_.batch, left) &&
            !progress_.counts.contains(id)) {
            ids.push_back(id);
        }
    }
    const bool ends = ids.size() < settings_.batch;
    take(std::move(ids), ends);
}

void Trainer::take(std::vector<std::uint64_t> ids, bool ends_epoch) {
    batch_ = {std::move(ids), {}, {}, 0, ends_epoch};
    for (const std::uint64_t id : batch_.ids) {
        if (!read_node(id, "node")) {
            batch_.missing.push_back(id);
        }
    }
    fetch_missing();
}

bool Trainer::read_node(std::uint64_t id, const char* source) {
    const auto bytes = node_ == nullptr ? std::nullopt : node_->read(id);
    if (bytes) {
        oracle_.on_served(name(), id, *bytes, source);
    }
    return bytes.has_value();
}

void Trainer::fetch_missing() {
    if (batch_.missing.empty() || batch_.rounds == kFetchRounds || !link_.is_attached()) {
        if (!batch_.missing.empty() && callbacks_.is_keyless()) {
            await_sidecar();
            return;
        }
        batch_.from_origin = std::exchange(batch_.missing, {});
        read_at_origin();
        return;
    }
    ++batch_.rounds;
    link_.ask(
        local::Fetch{batch_.missing}, kFetchTimeout, [this](std::optional<local::Message> answer) {
            if (const auto* fetched = answer ? std::get_if<local::Fetched>(&*answer) : nullptr) {
                on_fetched(*fetched);
                return;
            }
            note_error("a fetch", answer);
            batch_.rounds = kFetchRounds;
            fetch_missing();
        });
}

void Trainer::on_fetched(const local::Fetched& fetched) {
    if (fetched.statuses.size() != batch_.missing.size()) {
        oracle_.accuse(name() + " got an answer to another fetch");
        return;
    }
    std::vector<std::uint64_t> damaged;
    std::vector<std::uint64_t> elsewhere;
    std::vector<std::uint64_t> failed;  // samples of `elsewhere` for which the origin gave an error
    for (std::size_t i = 0; i < fetched.statuses.size(); ++i) {
        const std::uint64_t id = batch_.missing[i];
        if (fetched.statuses[i] != local::FetchStatus::kReady) {
            elsewhere.push_back(id);
            if (fetched.statuses[i] == local::FetchStatus::kOriginError) {
                failed.push_back(id);
            }
        } else if (!read_node(id, "node after a fetch")) {
            node_->refresh();
            if (!read_node(id, "node after a fetch")) {
                ++oracle_.counts["ready but not readable"];
                callbacks_.unreadable();
                damaged.push_back(id);
            }
        }
    }
    note_elsewhere(fetched, elsewhere, failed);
    const bool is_last = damaged.empty();
    batch_.missing = std::move(damaged);
    batch_.missing.insert(batch_.missing.end(), elsewhere.begin(), elsewhere.end());
    if (is_last) {
        batch_.rounds = kFetchRounds;
    }
    fetch_missing();
}

// `elsewhere`: samples that were not returned; `failed`: those of them with an origin's error.
void Trainer::note_elsewhere(
    const local::Fetched& fetched,
    const std::vector<std::uint64_t>& elsewhere,
    const std::vector<std::uint64_t>& failed) {
    if (failed.empty() == !fetched.message.empty()) {
        oracle_.accuse(
            name() + " got an error of the origin without its reason, or a reason alone");
    }
    // A batch may exceed the trainer's share of the window: without a key it takes several fetches.
    const bool is_part = callbacks_.is_keyless() && elsewhere.size() < fetched.statuses.size();
    if (!failed.empty()) {
        callbacks_.refused(
            fmt::format("a fetch of sample {} ({})", failed.front(), fetched.message), failed);
    } else if (!elsewhere.empty() && !is_part) {
        callbacks_.no_room(
            fmt::format("a fetch of sample {} (read at the origin)", elsewhere.front()));
    }
}

Bytes Trainer::batch_bytes() const {
    Bytes sum{};
    for (const std::uint64_t id : batch_.ids) {
        sum += Bytes{domain::record_bytes(oracle_.payload(id).size())};
    }
    return sum;
}

// A guest without a key can read no origin.
void Trainer::await_sidecar() {
    batch_.rounds = 0;
    timer_.run_in(kReadOriginAgain, [this] { fetch_missing(); });
}

// The real client retries, then raises an error. This trainer tries again instead.
void Trainer::read_at_origin() {
    if (batch_.from_origin.empty()) {
        on_batch();
        return;
    }
    const std::uint64_t id = batch_.from_origin.back();
    const auto info = oracle_.dataset().manifest().sample(domain::SampleId{id});
    site_.fetch(
        *this,
        settings_.pod,
        {std::string{info.key}, std::string{info.etag}, info.size_bytes},
        [this, id](const Result<sidecar::OriginBytes>& bytes) {
            if (!bytes) {
                timer_.run_in(kReadOriginAgain, [this] { read_at_origin(); });
                return;
            }
            oracle_.on_served(name(), id, bytes->payload, "origin");
            batch_.from_origin.pop_back();
            read_at_origin();
        });
}

void Trainer::on_batch() {
    for (const std::uint64_t id : batch_.ids) {
        ++progress_.counts[id];
    }
    progress_.drawn += batch_.ids.size();
    if (!batch_.ids.empty()) {
        link_.tell(local::Consumed{progress_.epoch, batch_.ids});
        report_losses();
    }
    timer_.run_in(settings_.compute, [this] {
        if (batch_.ends_epoch) {
            end_epoch();
        } else {
            next_batch();
        }
    });
}

// Every sample has its loss, which falls from epoch to epoch.
void Trainer::report_losses() {
    if (!settings_.reports_losses() || begun_on_ != link_.attached_count()) {
        return;
    }
    local::Losses losses;
    losses.epoch = progress_.epoch;
    for (const std::uint64_t id : batch_.ids) {
        losses.samples.push_back(id);
        losses.losses.push_back(
            static_cast<float>(1 + id * 37 % 101) / static_cast<float>(10 + progress_.epoch));
    }
    link_.tell(losses);
}

void Trainer::end_epoch() {
    EpochRead read{name(), settings_.contract, progress_.epoch};
    read.is_full = progress_.epoch < kWarmupEpochs;
    oracle_.on_epoch(read, progress_.counts, share(progress_.epoch));
    schedule_.say(fmt::format("has read epoch {}", progress_.epoch));
    progress_.counts.clear();
    progress_.drawn = 0;
    ++progress_.epoch;
    if (progress_.epoch == settings_.epochs || callbacks_.may_end()) {
        progress_.is_done = true;
        return;
    }
    begin_epoch();
}

}  // namespace stoker::world

// The half of Leader that speaks with sessions, the origin and the store on the engine's behalf.
#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "common/log/log.h"
#include "sidecar/service/leader.h"
#include "sidecar/service/sealed_plan.h"

namespace stoker::sidecar {

using domain::SampleId;

namespace {

constexpr std::size_t kFetchSamplesMax = 16384;
constexpr std::size_t kPendingFetchesMax = 64;
constexpr std::ptrdiff_t kGuestStreamsMax = 64;  // of one door
constexpr std::uint32_t kForbiddenMax = 8;       // one object may have an owner of its own

local::FetchStatus status_of(FetchOutcome outcome) {
    switch (outcome) {
        case FetchOutcome::kReady:
            return local::FetchStatus::kReady;
        case FetchOutcome::kReadAtOrigin:
            return local::FetchStatus::kReadAtOrigin;
        case FetchOutcome::kOriginError:
            return local::FetchStatus::kOriginError;
    }
    return local::FetchStatus::kReadAtOrigin;
}

std::vector<SampleIndex> to_indices(const std::vector<std::uint64_t>& ids) {
    std::vector<SampleIndex> samples(ids.size());
    std::ranges::transform(
        ids, samples.begin(), [](std::uint64_t id) { return static_cast<SampleIndex>(id); });
    return samples;
}

}  // namespace

void Leader::on_frame(Session& session, Frame frame) {
    if (!welcomed_.contains(session.id())) {
        session.refuse({ErrorCode::kInvalidArgument, "a frame before the welcome"});
        return;
    }
    const local::FrameHeader header = frame.header;
    if (header.type == local::FrameType::kPlan) {
        on_plan(session, std::move(frame));
        return;
    }
    const auto message = local::decode_payload(header.type, frame.payload);
    if (!message) {
        session.send_error(message.error(), header.request_id);
        session.hang_up();
        return;
    }
    if (const auto* probed = std::get_if<local::Probed>(&*message)) {
        apply(engine_->fetch().on_bypass(session.id(), probed->bypassing, parts_.loop.now()));
    } else if (const auto* begin = std::get_if<local::Begin>(&*message)) {
        on_begin(session, header.request_id, *begin, frame.fd);
    } else if (const auto* fetch = std::get_if<local::Fetch>(&*message)) {
        on_fetch(session, header.request_id, *fetch);
    } else if (const auto* consumed = std::get_if<local::Consumed>(&*message)) {
        on_consumed(session, header.request_id, *consumed);
    } else if (!std::holds_alternative<local::Report>(*message)) {
        on_sampling(session, header.request_id, *message);
    }
}

void Leader::on_fetch(Session& session, std::uint64_t request_id, const local::Fetch& fetch) {
    auto wrong = check_fetch(session, fetch);
    Holdings& room = rooms(!session.guest().empty()).pending;
    if (!wrong && !room.take(session.sidecar(), fetch.samples.size())) {
        wrong = Error{ErrorCode::kResourceExhausted, "too many samples wait for their answers"};
    }
    if (wrong) {
        session.send_error(*wrong, request_id);
        return;
    }
    pending_samples_[session.id()] += fetch.samples.size();
    apply(engine_->fetch().on_fetch(
        session.id(), request_id, to_indices(fetch.samples), parts_.loop.now()));
}

std::optional<Error> Leader::check_fetch(const Session& session, const local::Fetch& fetch) const {
    if (fetch.samples.size() > kFetchSamplesMax) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a fetch of {} samples, the limit is {}", fetch.samples.size(), kFetchSamplesMax)};
    }
    if (engine_->fetch().pending_requests(session.id()) >= kPendingFetchesMax) {
        return Error{ErrorCode::kResourceExhausted, "too many fetches wait for their answers"};
    }
    return check_ids(fetch.samples);
}

void Leader::on_consumed(
    Session& session, std::uint64_t request_id, const local::Consumed& consumed) {
    if (const auto wrong = check_ids(consumed.samples)) {
        session.send_error(*wrong, request_id);
        return;
    }
    const auto samples = to_indices(consumed.samples);
    ReadCounts counts;
    apply(engine_->on_consumed(
        session.id(), session.stream(), consumed.epoch, samples, parts_.loop.now(), counts));
    const local::Counted counted{
        counts.hit_samples,
        counts.hit_bytes.count(),
        counts.fetched_samples,
        counts.fetched_bytes.count()};
    if (request_id != 0) {
        session.send(counted, request_id);  // of another sidecar's trainer
    } else if (!session.hello().relay) {
        listener_.on_counted(counted);
    }
}

// The session waits meanwhile, so that nothing that it says after the plan comes before it.
void Leader::on_plan(Session& session, Frame frame) {
    const std::uint64_t request_id = frame.header.request_id;
    const auto message = local::decode_payload(frame.header.type, frame.payload);
    if (!message) {
        session.send_error(message.error(), request_id);
        return;
    }
    if (!session.stream()) {
        session.send_error(
            {ErrorCode::kInvalidArgument, "a plan needs a stream in the hello"}, request_id);
        return;
    }
    const auto plan = std::get<local::Plan>(*message);
    const std::uint64_t samples = manifest_->view().sample_count();
    const auto positions = check_plan(frame.fd, plan, samples);
    if (!positions) {
        session.send_error(positions.error(), request_id);
        return;
    }
    if (!take_stream(session) || !take_plan_room(session, *positions)) {
        session.send_error(
            {ErrorCode::kResourceExhausted, "too many plans for the memory of this sidecar"},
            request_id);
        return;
    }
    session.set_paused(true);
    const auto memfd = std::make_shared<UniqueFd>(std::move(frame.fd));
    const auto read = std::make_shared<Result<StreamPlan>>(fail(ErrorCode::kInternal, ""));
    const auto time = std::make_shared<Duration>();
    read_plan_of(
        session,
        [this,
         read,
         memfd,
         plan,
         samples,
         time,
         request_id,
         id = session.id(),
         party = session.party()] {
            on_pool(
                [read, memfd, plan, samples, time, &loop = parts_.loop] {
                    const TimePoint began = loop.now();
                    *read = read_plan(*memfd, plan, samples);
                    *time = loop.now() - began;
                },
                [this, read, time, request_id, id, party] {
                    if (const auto found = sessions_.find(id); found != sessions_.end()) {
                        found->second->note_work(*time);
                    }
                    finish_plan(id, request_id, std::move(*read));
                    end_guest_plan(party);
                });
        });
}

// One guest's plans are read one after the other: its sorting must not hold up everybody's appends.
void Leader::read_plan_of(const Session& session, std::function<void()> read) {
    if (session.guest().empty()) {
        read();
        return;
    }
    auto& plans = guest_plans_[session.party()];
    plans.push_back(std::move(read));
    if (plans.size() == 1) {
        plans.front()();
    }
}

void Leader::end_guest_plan(Party party) {
    const auto plans = guest_plans_.find(party);
    if (plans == guest_plans_.end()) {
        return;
    }
    plans->second.pop_front();
    if (plans->second.empty()) {
        guest_plans_.erase(plans);
    } else {
        plans->second.front()();
    }
}

// A guest's streams with plans are few: every event looks at all of them.
bool Leader::take_stream(const Session& session) {
    if (session.guest().empty() || guest_streams_.contains(*session.stream())) {
        return true;
    }
    const auto own = std::ranges::count_if(
        guest_streams_, [&session](const auto& entry) { return entry.second == session.party(); });
    if (own >= kGuestStreamsMax) {
        return false;
    }
    guest_streams_.emplace(*session.stream(), session.party());
    return true;
}

// What the stream's plan before it had counts no more.
bool Leader::take_plan_room(const Session& session, std::uint64_t positions) {
    const auto before = plans_.find(*session.stream());
    const PlanRoom old = before == plans_.end() ? PlanRoom{} : before->second;
    const bool guest = !session.guest().empty();
    rooms(old.guest).plan.give(old.sidecar, old.positions);
    if (!rooms(guest).plan.take(session.sidecar(), positions)) {
        rooms(old.guest).plan.take(old.sidecar, old.positions);
        return false;
    }
    plans_[*session.stream()] = {session.sidecar(), positions, guest};
    return true;
}

void Leader::give_plan_room(StreamId stream) {
    if (const auto plan = plans_.extract(stream)) {
        const PlanRoom& room = plan.mapped();
        rooms(room.guest).plan.give(room.sidecar, room.positions);
    }
}

bool Leader::is_last_of_stream(const Session& session) const {
    return std::ranges::none_of(sessions_, [&session](const auto& entry) {
        return entry.first != session.id() && entry.second->stream() == session.stream();
    });
}

void Leader::finish_plan(
    ConnectionId connection, std::uint64_t request_id, Result<StreamPlan> plan) {
    const auto found = sessions_.find(connection);
    if (found == sessions_.end()) {
        return;
    }
    Session& session = *found->second;
    if (plan) {
        log::debug(
            "plan",
            {{"dataset", config_.name},
             {"epoch", plan->epoch()},
             {"samples", plan->length()},
             {"ahead", plan->horizon() - plan->length()}});
        apply(engine_->fetch().on_plan(connection, *std::move(plan), parts_.loop.now()));
        session.send(local::Planned{}, request_id);
    } else {
        session.send_error(plan.error(), request_id);
    }
    session.set_paused(false);
}

std::optional<Error> Leader::check_ids(const std::vector<std::uint64_t>& ids) const {
    const std::uint64_t count = manifest_->view().sample_count();
    const auto wrong = std::ranges::find_if(ids, [count](std::uint64_t id) { return id >= count; });
    if (wrong == ids.end()) {
        return std::nullopt;
    }
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("sample {} is asked for, the dataset has {}", *wrong, count)};
}

void Leader::apply(Effects effects) {
    if (retiring_) {
        return;  // we retire: what is there stays, nothing more is begun
    }
    for (const SampleIndex sample : effects.drops) {
        store_->drop(SampleId{sample});
    }
    for (const StartFetch& fetch : effects.fetches) {
        start_fetch(fetch);
    }
    for (const SampleIndex sample : effects.verifies) {
        start_verify(sample);
    }
    if (!effects.will_need.empty() || !effects.wont_need.empty()) {
        on_pool(
            [this,
             will_need = std::move(effects.will_need),
             wont_need = std::move(effects.wont_need)] {
                std::ranges::for_each(
                    will_need, [this](auto id) { store_->will_need(SampleId{id}); });
                std::ranges::for_each(
                    wont_need, [this](auto id) { store_->wont_need(SampleId{id}); });
            },
            [] {});
    }
    for (const FetchReply& answer : effects.replies) {
        reply(answer);
    }
    schedule_tick();
}

void Leader::start_fetch(const StartFetch& fetch) {
    const auto info = manifest_->view().sample(SampleId{fetch.sample});
    ++busy_;
    origin_.fetch(
        {std::string{info.key}, std::string{info.etag}, info.size_bytes},
        [this, fetch, started_at = parts_.loop.now()](Result<OriginBytes> bytes) {
            on_origin_bytes(fetch, started_at, std::move(bytes));
        });
}

// On a thread of the origin.
void Leader::on_origin_bytes(
    const StartFetch& fetch, TimePoint started_at, Result<OriginBytes> bytes) {
    if (!bytes) {
        post([this, fetch, started_at, error = bytes.error()] {
            ++origin_requests_;
            origin_request_time_ += parts_.loop.now() - started_at;
            const bool is_ours = engine_->fetch().sample(fetch.sample).party == kOwnParty;
            apply(engine_->fetch().on_fetch_failed(fetch.sample, error, parts_.loop.now()));
            if (is_ours) {
                note_forbidden(error);  // what guests ask for is no reason to let the lead go
            }
            note_changed(fetch.sample, error);
            end_work();
        });
        return;
    }
    const auto shared = std::make_shared<OriginBytes>(*std::move(bytes));
    const TimePoint arrived_at = parts_.loop.now();
    parts_.io.post([this, fetch, started_at, arrived_at, shared] {
        const auto stored =
            store_->append(SampleId{fetch.sample}, shared->payload, fetch.segment_class);
        const Status status = stored ? Status{} : Status{fail(stored.error())};
        const Bytes size{shared->payload.size()};
        const FetchTimes times{arrived_at - started_at, parts_.loop.now() - arrived_at};
        post([this, fetch, status, times, size, requests = shared->requests] {
            origin_requests_ += requests;
            origin_bytes_ += size;
            origin_request_time_ += times.origin;
            forbidden_in_row_ = 0;
            on_append_done(fetch, status, times);
            end_work();
        });
    });
}

void Leader::note_forbidden(const Error& error) {
    forbidden_in_row_ = error.code == ErrorCode::kForbidden ? forbidden_in_row_ + 1 : 0;
    if (forbidden_in_row_ >= kForbiddenMax && !retiring_) {
        callbacks_.forbidden(error);
    }
}

// The attempt goes on: who reads the sample gets the error. The operator tells the key.
void Leader::note_changed(SampleIndex sample, const Error& error) {
    if (error.code != ErrorCode::kConflict || !changed_key_.empty()) {
        return;
    }
    changed_key_ = manifest_->view().sample(SampleId{sample}).key;
    log::warning(
        "an object is not as it was listed",
        {{"dataset", config_.name}, {"key", changed_key_}, {"error", error.message}});
}

void Leader::on_append_done(
    const StartFetch& fetch, const Status& status, const FetchTimes& times) {
    const TimePoint now = parts_.loop.now();
    if (status) {
        step_aside_.on_stored(times);
        apply(engine_->fetch().on_stored(fetch.sample, now));
        return;
    }
    if (engine_->fetch().is_admitting()) {
        log::warning(
            "the store takes nothing more for now",
            {{"dataset", config_.name},
             {"code", to_string(status.error().code)},
             {"error", status.error().message}});
    }
    apply(engine_->fetch().on_store_failed(fetch.sample, status.error(), now));
}

void Leader::start_verify(SampleIndex sample) {
    const auto intact = std::make_shared<bool>(false);
    on_pool(
        [this, sample, intact] { *intact = store_->verify(SampleId{sample}); },
        [this, sample, intact] {
            if (!*intact) {
                log::warning(
                    "a stored sample was damaged and is fetched again",
                    {{"dataset", config_.name}, {"sample", sample}});
            }
            apply(engine_->fetch().on_verified(sample, *intact, parts_.loop.now()));
        });
}

void Leader::reply(const FetchReply& reply) {
    const auto session = sessions_.find(reply.connection);
    if (session == sessions_.end()) {
        return;
    }
    pending_samples_[reply.connection] -= reply.outcomes.size();
    const bool guest = !session->second->guest().empty();
    rooms(guest).pending.give(session->second->sidecar(), reply.outcomes.size());
    local::Fetched fetched;
    fetched.statuses.reserve(reply.outcomes.size());
    std::ranges::transform(reply.outcomes, std::back_inserter(fetched.statuses), status_of);
    fetched.message = reply.message;
    session->second->send(fetched, reply.request_id);
}

void Leader::schedule_tick() {
    const auto next = engine_->fetch().next_deadline(parts_.loop.now());
    if (next == tick_at_) {
        return;
    }
    parts_.loop.cancel(tick_timer_);
    tick_at_ = next;
    if (next) {
        tick_timer_ = parts_.loop.run_at(*next, [this] {
            tick_at_.reset();
            apply(engine_->fetch().tick(parts_.loop.now()));
        });
    }
}

}  // namespace stoker::sidecar

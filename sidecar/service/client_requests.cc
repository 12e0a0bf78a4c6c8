#include "sidecar/service/client_requests.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "common/log/log.h"
#include "sidecar/service/client_memfds.h"
#include "sidecar/service/known_reads.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kFetchSamplesMax = 16384;
constexpr std::size_t kPendingFetchesMax = 64;

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

// Passes the stream's request to `ask`, and its answer or error to the session.
template <class Ask>
void answer(Session& session, std::uint64_t request_id, Ask ask) {
    if (!session.stream()) {
        session.send_error(
            {ErrorCode::kInvalidArgument, "a contract needs a stream id in the hello"}, request_id);
        return;
    }
    const auto result = ask(*session.stream());
    if (result) {
        session.send(*result, request_id);
    } else {
        session.send_error(result.error(), request_id);
    }
}

Client client_of(const Session& session) {
    return {session.id(), session.stream(), session.sidecar(), session.party()};
}

// A guest may only name jobs of its own namespace.
local::Begin begin_of(const Session& session, local::Begin begin) {
    if (!session.guest().empty()) {
        begin.job = guest_job(session.guest(), begin.job);
    }
    return begin;
}

}  // namespace

ClientRequests::ClientRequests(
    const SidecarParts& parts,
    const DatasetConfig& config,
    ServedDataset& served,
    ReadingListener& listener)
    : loop_(parts.loop),
      config_(config),
      served_(served),
      listener_(listener),
      job_uid_(parts.job_uid),
      sample_count_(served.manifest().sample_count()) {
    rooms_.set_sample_count(sample_count_);
    served_.set_on_reply([this](const FetchReply& answer) { reply(answer); });
}

void ClientRequests::welcome(Session& session) {
    engine().fetch().on_connect(session.id(), session.stream(), session.party());
    sessions_[session.id()] = &session;
    local::Welcome welcome;
    welcome.revision = served_.manifest().revision().value();
    welcome.sample_count = sample_count_;
    welcome.directory = config_.client_directory;
    welcome.features = local::kFeatureContracts | local::kFeatureProbe | local::kFeatureCounts |
                       local::kFeatureAhead | local::kFeaturePOthers;
    session.send_welcome(welcome);
}

void ClientRequests::leave(const Session& session) {
    if (sessions_.erase(session.id()) == 0) {
        return;
    }
    const bool is_last = std::ranges::none_of(sessions_, [&session](const auto& entry) {
        return entry.second->stream() == session.stream();
    });
    rooms_.leave(client_of(session), is_last);
    if (const auto draws = draws_by_.extract(session.id())) {
        engine().leave(draws.mapped());
    }
    served_.apply(engine().fetch().on_disconnect(session.id(), loop_.now()));
}

void ClientRequests::on_frame(Session& session, Frame frame) {
    if (!sessions_.contains(session.id())) {
        session.refuse({ErrorCode::kInvalidArgument, "frame sent before the welcome"});
        return;
    }
    const local::Message& message = frame.message;
    if (const auto* probed = std::get_if<local::Probed>(&message)) {
        served_.apply(engine().fetch().on_bypass(session.id(), probed->bypassing, loop_.now()));
    } else if (const auto* plan = std::get_if<local::Plan>(&message)) {
        on_plan(session, frame.request_id, *plan, std::move(frame.fd));
    } else if (const auto* begin = std::get_if<local::Begin>(&message)) {
        on_begin(session, frame.request_id, *begin, frame.fd);
    } else if (const auto* fetch = std::get_if<local::Fetch>(&message)) {
        on_fetch(session, frame.request_id, *fetch);
    } else if (const auto* consumed = std::get_if<local::Consumed>(&message)) {
        on_consumed(session, frame.request_id, *consumed);
    } else if (!std::holds_alternative<local::Report>(message)) {
        on_sampling(session, frame.request_id, message);
    }
}

void ClientRequests::on_fetch(
    Session& session, std::uint64_t request_id, const local::Fetch& fetch) {
    auto wrong = check_fetch(session, fetch);
    if (!wrong && !rooms_.take_fetch(client_of(session), fetch.samples.size())) {
        wrong = Error{ErrorCode::kResourceExhausted, "too many samples are unanswered"};
    }
    if (wrong) {
        session.send_error(*wrong, request_id);
        return;
    }
    served_.apply(engine().fetch().on_fetch(
        session.id(), request_id, to_indices(fetch.samples), loop_.now()));
}

std::optional<Error> ClientRequests::check_fetch(
    const Session& session, const local::Fetch& fetch) const {
    if (fetch.samples.size() > kFetchSamplesMax) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format(
                "fetch has {} samples; the limit is {}", fetch.samples.size(), kFetchSamplesMax)};
    }
    if (engine().fetch().pending_requests(session.id()) >= kPendingFetchesMax) {
        return Error{ErrorCode::kResourceExhausted, "too many fetches are unanswered"};
    }
    return check_ids(fetch.samples);
}

void ClientRequests::on_consumed(
    Session& session, std::uint64_t request_id, const local::Consumed& consumed) {
    if (const auto wrong = check_ids(consumed.samples)) {
        session.send_error(*wrong, request_id);
        return;
    }
    const auto samples = to_indices(consumed.samples);
    ReadCounts counts;
    served_.apply(engine().on_consumed(
        session.id(), session.stream(), consumed.epoch, samples, loop_.now(), counts));
    const local::Counted counted{
        counts.hit_samples,
        counts.hit_bytes.count(),
        counts.fetched_samples,
        counts.fetched_bytes.count()};
    if (request_id != 0) {
        session.send(counted, request_id);  // to the sidecar that relays this trainer's session
    } else if (!session.hello().relay) {
        listener_.on_counted(counted);
    }
}

void ClientRequests::on_plan(
    Session& session, std::uint64_t request_id, const local::Plan& plan, UniqueFd memfd) {
    if (!session.stream()) {
        session.send_error(
            {ErrorCode::kInvalidArgument, "a plan needs a stream id in the hello"}, request_id);
        return;
    }
    const auto positions = check_plan(memfd, plan, sample_count_);
    if (!positions) {
        session.send_error(positions.error(), request_id);
        return;
    }
    const Client client = client_of(session);
    if (!rooms_.take_stream(client) || !rooms_.take_plan(client, *positions)) {
        session.send_error(
            {ErrorCode::kResourceExhausted, "all plans exceed this sidecar's limit"}, request_id);
        return;
    }
    session.set_paused(true);
    read_plan_of(session, request_id, plan, std::move(memfd));
}

// Reads a plan on the thread pool; pauses the session meanwhile, so that its later frames are
// handled after the plan. Reads one plan of a guest at a time: sorting plans must not occupy all
// threads, which also store samples.
void ClientRequests::read_plan_of(
    const Session& session, std::uint64_t request_id, const local::Plan& plan, UniqueFd memfd) {
    struct Reading {
        UniqueFd memfd;
        Result<StreamPlan> plan = fail(ErrorCode::kInternal, "");
        Duration time{};
        std::optional<control::KnownReads> differs{};  // the reads that the plan does not follow
    };

    const auto reading = std::make_shared<Reading>(Reading{std::move(memfd)});
    auto read = [reading,
                 plan,
                 samples = sample_count_,
                 &loop = loop_,
                 reads = reads_of(session),
                 rank = session.hello().rank,
                 ranks = session.hello().world_size] {
        const TimePoint began = loop.now();
        reading->plan = read_plan(reading->memfd, plan, samples);
        if (reads && reading->plan && !is_foretold(*reads, samples, rank, ranks, *reading->plan)) {
            reading->differs = reads;
        }
        reading->time = loop.now() - began;
    };
    auto finish = [this, reading, request_id, id = session.id(), party = session.party()] {
        if (const auto found = sessions_.find(id); found != sessions_.end()) {
            found->second->note_work(reading->time);
            if (reading->differs) {
                served_.note_reads_differ(*reading->differs);
            }
            finish_plan(*found->second, request_id, std::move(reading->plan));
        }
        plan_turns_.end(party);
    };
    plan_turns_.run(session.party(), [this, read = std::move(read), finish = std::move(finish)] {
        served_.on_pool(read, finish);
    });
}

// The known reads that the session's plan must follow. A trainer of another pod does not tell its
// job, but while the operator sends reads, only their job reads the dataset here.
std::optional<control::KnownReads> ClientRequests::reads_of(const Session& session) const {
    const control::KnownReads* const reads = served_.known_reads();
    const bool is_of_job = reads != nullptr && session.guest().empty() &&
                           (session.hello().relay || job_uid_ == reads->job_uid);
    const bool fits = is_of_job && can_place(*reads, sample_count_, reads->rank_members.size());
    return fits ? std::optional{*reads} : std::nullopt;
}

void ClientRequests::finish_plan(
    Session& session, std::uint64_t request_id, Result<StreamPlan> plan) {
    if (plan) {
        log::debug(
            "plan",
            {{"dataset", config_.name},
             {"epoch", plan->epoch()},
             {"samples", plan->length()},
             {"ahead", plan->horizon() - plan->length()}});
        served_.apply(engine().fetch().on_plan(session.id(), *std::move(plan), loop_.now()));
        session.send(local::Planned{}, request_id);
    } else {
        session.send_error(plan.error(), request_id);
    }
    session.set_paused(false);
}

std::optional<Error> ClientRequests::check_ids(const std::vector<std::uint64_t>& ids) const {
    const auto wrong =
        std::ranges::find_if(ids, [this](std::uint64_t id) { return id >= sample_count_; });
    if (wrong == ids.end()) {
        return std::nullopt;
    }
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("no sample {}: the dataset has {} samples", *wrong, sample_count_)};
}

void ClientRequests::reply(const FetchReply& reply) {
    const auto found = sessions_.find(reply.connection);
    if (found == sessions_.end()) {
        return;
    }
    Session& session = *found->second;
    rooms_.give_fetch(client_of(session), reply.outcomes.size());
    local::Fetched fetched;
    fetched.statuses.reserve(reply.outcomes.size());
    std::ranges::transform(reply.outcomes, std::back_inserter(fetched.statuses), status_of);
    fetched.message = reply.message;
    session.send(fetched, reply.request_id);
}

void ClientRequests::on_sampling(
    Session& session, std::uint64_t request_id, const local::Message& message) {
    if (const auto* draw = std::get_if<local::Draw>(&message)) {
        on_draw(session, request_id, *draw);
    } else if (const auto* losses = std::get_if<local::Losses>(&message)) {
        if (session.stream()) {
            engine().samplers().on_losses(*session.stream(), *losses);
        }
    } else if (const auto* similarity = std::get_if<local::Similarity>(&message)) {
        if (session.stream()) {
            engine().samplers().on_similarity(*session.stream(), *similarity);
        }
    } else if (const auto* ask = std::get_if<local::AskEpoch>(&message)) {
        answer(session, request_id, [&](StreamId stream) {
            return engine().samplers().report(stream, ask->epoch);
        });
    } else if (std::holds_alternative<local::AskSnapshot>(message)) {
        answer(session, request_id, [&](StreamId stream) {
            return engine().samplers().snapshot(stream);
        });
    } else {
        session.send_error(
            {ErrorCode::kInvalidArgument, "unexpected frame from a client"}, request_id);
        session.hang_up();
    }
}

void ClientRequests::on_begin(
    Session& session, std::uint64_t request_id, const local::Begin& begin, const UniqueFd& memfd) {
    answer(session, request_id, [&](StreamId stream) -> Result<local::Begun> {
        STOKER_TRY(const auto state, read_begin_state(memfd, begin, sample_count_));
        if (!rooms_.take_stream(client_of(session))) {
            return fail(ErrorCode::kResourceExhausted, "too many streams of one guest");
        }
        Effects effects;
        auto begun = engine().begin(
            {session.id(), stream, session.sidecar(), session.party()},
            begin_of(session, begin),
            state,
            loop_.now(),
            effects);
        if (begun) {
            std::erase_if(draws_by_, [stream](const auto& by) { return by.second == stream; });
            draws_by_[session.id()] = stream;
            log::debug(
                "epoch begun",
                {{"dataset", config_.name},
                 {"job", begin.job},
                 {"contract", begin.contract},
                 {"rank", begin.rank},
                 {"epoch", begin.epoch},
                 {"skip", begin.skip}});
            served_.apply(std::move(effects));
        }
        return begun;
    });
}

void ClientRequests::on_draw(Session& session, std::uint64_t request_id, const local::Draw& draw) {
    answer(session, request_id, [&](StreamId stream) {
        Effects effects;
        auto drawn = engine().draw(session.id(), stream, draw, loop_.now(), effects);
        if (drawn) {
            if (!session.hello().relay) {
                listener_.on_drawn(session, *drawn);
            }
            served_.apply(std::move(effects));
        }
        return drawn;
    });
}

}  // namespace stoker::sidecar

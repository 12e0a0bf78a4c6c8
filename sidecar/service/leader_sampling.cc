// The part of Leader that serves jobs which read under a sampling contract.
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/log/log.h"
#include "sidecar/service/leader.h"
#include "sidecar/service/sealed_state.h"

namespace stoker::sidecar {

namespace {

// The stream's request goes to `ask`; its answer, or its error, to the session.
template <class Ask>
void answer(Session& session, std::uint64_t request_id, Ask ask) {
    if (!session.stream()) {
        session.send_error(
            {ErrorCode::kInvalidArgument, "a contract needs a stream in the hello"}, request_id);
        return;
    }
    const auto result = ask(*session.stream());
    if (result) {
        session.send(*result, request_id);
    } else {
        session.send_error(result.error(), request_id);
    }
}

// A guest speaks for jobs of its own namespace only.
local::Begin begin_of(const Session& session, local::Begin begin) {
    if (!session.guest().empty()) {
        begin.job = guest_job(session.guest(), begin.job);
    }
    return begin;
}

}  // namespace

void Leader::on_sampling(
    Session& session, std::uint64_t request_id, const local::Message& message) {
    if (const auto* draw = std::get_if<local::Draw>(&message)) {
        on_draw(session, request_id, *draw);
    } else if (const auto* losses = std::get_if<local::Losses>(&message)) {
        if (session.stream()) {
            desk_->on_losses(*session.stream(), *losses);
        }
    } else if (const auto* similarity = std::get_if<local::Similarity>(&message)) {
        if (session.stream()) {
            desk_->on_similarity(*session.stream(), *similarity);
        }
    } else if (const auto* ask = std::get_if<local::AskEpoch>(&message)) {
        answer(
            session, request_id, [&](StreamId stream) { return desk_->tally(stream, ask->epoch); });
    } else if (std::holds_alternative<local::AskSnapshot>(message)) {
        answer(session, request_id, [&](StreamId stream) { return desk_->snapshot(stream); });
    } else {
        session.send_error(
            {ErrorCode::kInvalidArgument, "unexpected frame from a client"}, request_id);
        session.hang_up();
    }
}

void Leader::set_weights(JobWeights weights) {
    weights_ = std::move(weights);
    if (contracts_ != nullptr) {
        contracts_->importance().set_weights(weights_);
    }
}

void Leader::on_begin(
    Session& session, std::uint64_t request_id, const local::Begin& begin, const UniqueFd& memfd) {
    answer(session, request_id, [&](StreamId stream) -> Result<local::Begun> {
        STOKER_TRY(
            const auto state, read_begin_state(memfd, begin, manifest_->view().sample_count()));
        if (!take_stream(session)) {
            return fail(ErrorCode::kResourceExhausted, "too many streams of one guest");
        }
        auto begun = desk_->begin(
            stream, begin_of(session, begin), state, session.sidecar(), session.party());
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
            engine_->set_window_keeper(contracts_->window_keeper());
            const bool is_ours = config_.eviction == EvictionKind::kAuto;
            if (auto eviction = is_ours ? contracts_->importance().new_eviction() : nullptr) {
                engine_->set_eviction(std::move(eviction));
            }
            plan_ahead(session, stream);
        }
        return begun;
    });
}

void Leader::on_draw(Session& session, std::uint64_t request_id, const local::Draw& draw) {
    answer(session, request_id, [&](StreamId stream) {
        auto drawn = desk_->draw(stream, draw);
        if (drawn) {
            if (!session.hello().relay) {
                listener_.on_drawn(session, *drawn);
            }
            plan_ahead(session, stream);
        }
        return drawn;
    });
}

void Leader::stop_drawing(ConnectionId connection) {
    const auto drew = draws_by_.find(connection);
    if (drew != draws_by_.end()) {
        desk_->leave(drew->second);
        draws_by_.erase(drew);
    }
}

// What the sampler foresees is the engine's plan, in slices.
void Leader::plan_ahead(const Session& session, StreamId stream) {
    auto samples = desk_->new_plan(stream);
    if (!samples) {
        return;
    }
    auto plan = StreamPlan::make(
        desk_->epoch(stream), *std::move(samples), 0, manifest_->view().sample_count());
    STOKER_CHECK(plan.has_value(), "the desk plans samples of the dataset");
    apply(engine_->on_plan(session.id(), *std::move(plan), parts_.loop.now()));
}

}  // namespace stoker::sidecar

// The part of Leader that serves jobs which read under a sampling contract.
#include <utility>
#include <variant>

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
            engine_->desk().on_losses(*session.stream(), *losses);
        }
    } else if (const auto* similarity = std::get_if<local::Similarity>(&message)) {
        if (session.stream()) {
            engine_->desk().on_similarity(*session.stream(), *similarity);
        }
    } else if (const auto* ask = std::get_if<local::AskEpoch>(&message)) {
        answer(session, request_id, [&](StreamId stream) {
            return engine_->desk().tally(stream, ask->epoch);
        });
    } else if (std::holds_alternative<local::AskSnapshot>(message)) {
        answer(
            session, request_id, [&](StreamId stream) { return engine_->desk().snapshot(stream); });
    } else {
        session.send_error(
            {ErrorCode::kInvalidArgument, "unexpected frame from a client"}, request_id);
        session.hang_up();
    }
}

void Leader::set_weights(JobWeights weights) {
    weights_ = std::move(weights);
    if (engine_ != nullptr) {
        engine_->importance().set_weights(weights_);
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
        Effects effects;
        auto begun = engine_->begin(
            {session.id(), stream, session.sidecar(), session.party()},
            begin_of(session, begin),
            state,
            parts_.loop.now(),
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
            apply(std::move(effects));
        }
        return begun;
    });
}

void Leader::on_draw(Session& session, std::uint64_t request_id, const local::Draw& draw) {
    answer(session, request_id, [&](StreamId stream) {
        Effects effects;
        auto drawn = engine_->draw(session.id(), stream, draw, parts_.loop.now(), effects);
        if (drawn) {
            if (!session.hello().relay) {
                listener_.on_drawn(session, *drawn);
            }
            apply(std::move(effects));
        }
        return drawn;
    });
}

void Leader::stop_drawing(ConnectionId connection) {
    const auto drew = draws_by_.find(connection);
    if (drew != draws_by_.end()) {
        engine_->leave(drew->second);
        draws_by_.erase(drew);
    }
}

}  // namespace stoker::sidecar

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/service/client_rooms.h"
#include "sidecar/service/party_turns.h"
#include "sidecar/service/served_dataset.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

// The welcomed sessions of a served dataset: checks their requests, passes them to the engine
// within the limits of ClientRooms, and answers. Use it on the loop's thread.
class ClientRequests {
public:
    // Receives the engine's answers to fetches from now on. `listener` receives events of our own
    // pod's sessions. All arguments must outlive this object.
    ClientRequests(
        const SidecarParts& parts,
        const DatasetConfig& config,
        ServedDataset& served,
        ReadingListener& listener);
    ClientRequests(const ClientRequests&) = delete;
    ClientRequests& operator=(const ClientRequests&) = delete;

    void welcome(Session& session);
    void on_frame(Session& session, Frame frame);

    // Removes the session; does nothing if it was not welcomed.
    void leave(const Session& session);

    // Stops answering; the sessions are already hanging up.
    void forget_all() { sessions_.clear(); }

private:
    void on_fetch(Session& session, std::uint64_t request_id, const local::Fetch& fetch);
    void on_consumed(Session& session, std::uint64_t request_id, const local::Consumed& consumed);
    void on_plan(
        Session& session, std::uint64_t request_id, const local::Plan& plan, UniqueFd memfd);
    void read_plan_of(
        const Session& session, std::uint64_t request_id, const local::Plan& plan, UniqueFd memfd);
    [[nodiscard]] std::optional<control::KnownReads> reads_of(const Session& session) const;
    void finish_plan(Session& session, std::uint64_t request_id, Result<StreamPlan> plan);
    void on_sampling(Session& session, std::uint64_t request_id, const local::Message& message);
    void on_begin(
        Session& session,
        std::uint64_t request_id,
        const local::Begin& begin,
        const UniqueFd& memfd);
    void on_draw(Session& session, std::uint64_t request_id, const local::Draw& draw);
    void reply(const FetchReply& reply);
    [[nodiscard]] std::optional<Error> check_ids(const std::vector<std::uint64_t>& ids) const;
    [[nodiscard]] std::optional<Error> check_fetch(
        const Session& session, const local::Fetch& fetch) const;

    [[nodiscard]] DatasetEngine& engine() const { return served_.engine(); }

    EventLoop& loop_;
    const DatasetConfig& config_;
    ServedDataset& served_;
    ReadingListener& listener_;
    const std::string job_uid_;  // of our own pod; empty: none
    const std::uint64_t sample_count_;
    std::map<ConnectionId, Session*> sessions_;
    std::map<ConnectionId, StreamId> draws_by_;  // streams that draw under a contract
    ClientRooms rooms_;
    PartyTurns plan_turns_;
};

}  // namespace stoker::sidecar

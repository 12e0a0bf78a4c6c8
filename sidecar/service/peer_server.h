#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/event_loop.h"
#include "sidecar/peers/peer_messages.h"
#include "sidecar/peers/peer_network.h"

namespace stoker::sidecar {

class PeerServer;
class PeerSession;

// Serves the peers of one dataset. Called on the loop's thread.
class PeerHandler {
public:
    virtual ~PeerHandler() = default;

    // The session has sent a Hello for this dataset. Welcome it, refuse it, or let it wait; the
    // server refuses a session that has waited for PeerServer::kWaitMax.
    virtual void attach(PeerSession& session) = 0;

    // Handles a frame of a welcomed session.
    virtual void on_frame(PeerSession& session, const PeerMessage& message) = 0;
    virtual void on_drained(PeerSession& session) = 0;

    // The session ends; do not use it afterwards. Not called for a session that the handler ended.
    virtual void detach(PeerSession& session) = 0;
};

// One accepted connection of a peer. Owned by its PeerServer.
class PeerSession final : public PeerEvents {
public:
    PeerSession(PeerServer& server, std::unique_ptr<PeerChannel> channel);

    // Session number; increases from session to session of its server.
    [[nodiscard]] std::uint64_t number() const { return number_; }

    [[nodiscard]] const PeerHello& hello() const { return hello_; }

    // Answers the peer's Hello; the peer's frames are passed on from now on.
    void welcome(const PeerHello& ours);

    // Ends the connection and sends the peer a reason. Do not call it from detach().
    void refuse(PeerRefusalReason reason);

    void send(PeerFrame frame);

    [[nodiscard]] std::size_t unsent_bytes() const { return channel_->unsent_bytes(); }

    // Bytes given to the channel so far, whether or not the peer has taken them.
    [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }

    void on_open(const PeerIdentity& peer) override;
    void on_frame(PeerFrame frame) override;
    void on_drained() override;
    void on_end(const Error& error) override;

private:
    friend class PeerServer;

    void greet(const PeerMessage& message);

    PeerServer& server_;
    const std::uint64_t number_;
    std::unique_ptr<PeerChannel> channel_;
    PeerIdentity identity_;
    PeerHello hello_;
    PeerHandler* handler_ = nullptr;  // set by a good Hello
    bool is_welcome_ = false;
    bool is_over_ = false;  // about to be destroyed
    std::uint64_t sent_bytes_ = 0;
    LoopTimer wait_timer_;
};

// Accepts the connections of peers for all datasets of a sidecar. Checks that the certificate is
// for our namespace and for the dataset of the Hello, and passes the session to the dataset's
// handler. Refuses a session that is not welcomed within kWaitMax. Use it on the loop's thread.
// Handlers must end their sessions before they are destroyed.
class PeerServer {
public:
    // Finds the dataset's handler. nullptr: this sidecar does not lead the dataset.
    using Route = std::function<PeerHandler*(const std::string& dataset_uid)>;

    static constexpr Duration kWaitMax = std::chrono::seconds{20};

    PeerServer(EventLoop& loop, std::string namespace_name, Route route);
    PeerServer(const PeerServer&) = delete;
    PeerServer& operator=(const PeerServer&) = delete;
    ~PeerServer();

    // Returns the address where peers reach us. Call it once.
    Result<std::string> listen(PeerNetwork& network);

    [[nodiscard]] std::size_t session_count() const { return sessions_.size(); }

private:
    friend class PeerSession;

    PeerEvents& accept(std::unique_ptr<PeerChannel> channel);
    void end(PeerSession& session);

    EventLoop& loop_;
    const std::string namespace_name_;
    Route route_;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, std::unique_ptr<PeerSession>> sessions_;  // by number
    std::vector<std::unique_ptr<PeerSession>> gone_;  // destroyed in the loop's next turn
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar

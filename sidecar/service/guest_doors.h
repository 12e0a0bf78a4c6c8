#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/runtime/event_loop.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/service/session.h"
#include "sidecar/service/throttle.h"

namespace stoker::sidecar {

// Whether `name` can be a Kubernetes namespace: 1 to 63 of a-z, 0-9 and '-', with no '-' at either
// end.
bool is_namespace_name(std::string_view name);

// The sockets at which sidecars of other namespaces (guests) follow a leader: leader.sock (mode
// 0666) in each folder of guests/. The node program makes a folder for each namespace that shares
// the dataset and has a pod here. A pod sees only its own namespace's folder of guests/, so the
// folder of a connection proves its namespace. Scans for folders every half second. Skips names
// that are no namespace, links and non-folders; opens at most kDoorsMax sockets.
//
// All connections of one socket are one party (Session::party()) and together use at most kShareMax
// of the loop's time; all guest sockets together use at most twice that, and stay within Limits.
// Use it on the loop's thread.
class GuestDoors {
public:
    static constexpr std::size_t kDoorsMax = 254;      // parties 1 to 254
    static constexpr std::size_t kSessionsMax = 1024;  // per guest socket
    static constexpr double kShareMax = 0.2;

    // Limits of all guest sockets together. A session has a socket and at most four received
    // descriptors.
    struct Limits {
        std::size_t sessions = 4096;
        std::size_t room_bytes = std::size_t{128} << 20U;  // frames and answers; a socket gets half
        std::size_t little = std::size_t{16} << 10U;       // bytes per session, in addition

        // Limits for a process with so many descriptors (RLIMIT_NOFILE): sessions use at most a
        // third of them, but 64 sessions are always allowed.
        static Limits of(std::uint64_t descriptors_max);

        // Limits for this process.
        static Limits of_process();
    };

    // Scans at once. `route`: as for SessionServer.
    GuestDoors(
        EventLoop& loop,
        ConnectionIds& ids,
        std::string folder,
        SessionServer::Route route,
        Limits limits = Limits::of_process());
    GuestDoors(const GuestDoors&) = delete;
    GuestDoors& operator=(const GuestDoors&) = delete;

    [[nodiscard]] std::size_t size() const { return doors_.size(); }

    // Sessions of all guest sockets. A guest's sidecar keeps one open while it lives.
    [[nodiscard]] std::size_t session_count() const;

private:
    // A folder's identity on the disk; a folder that is deleted and made again has another one.
    struct Place {
        dev_t device = 0;
        ino_t inode = 0;

        bool operator==(const Place&) const = default;
    };

    struct Door {
        Place place;
        Party party;
        std::shared_ptr<Throttle> throttle;
        std::unique_ptr<SessionServer> server;
    };

    [[nodiscard]] std::map<std::string, Place> find_folders() const;
    void look();
    void open(const std::string& name, Place place);
    [[nodiscard]] Party free_party() const;
    void share_time();

    EventLoop& loop_;
    ConnectionIds& ids_;
    std::string folder_;
    SessionServer::Route route_;
    std::shared_ptr<SharedPlaces> places_ = std::make_shared<SharedPlaces>();
    std::shared_ptr<FrameSocket::SharedRoom> room_ = std::make_shared<FrameSocket::SharedRoom>();
    std::map<std::string, Door> doors_;  // by namespace
    std::set<std::string> failed_;       // namespaces whose socket could not be opened; logged once
    LoopTimer timer_;
};

}  // namespace stoker::sidecar

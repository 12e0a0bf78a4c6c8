#pragma once

#include <cstddef>
#include <functional>
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

// A Kubernetes namespace: 1 to 63 of a-z, 0-9 and '-', which is neither first nor last.
bool is_namespace_name(std::string_view name);

// The sockets at which sidecars of other namespaces follow a leader: leader.sock (mode 0666) in
// each folder of guests/. The node program makes a folder for each namespace that the dataset is
// shared with and that has a pod here, and mounts into that pod nothing else of guests/, so whoever
// connects is of that namespace. Folders are looked for every half second. Names that are not of
// namespaces, links and what is no folder are skipped; at most kDoorsMax doors are open.
//
// All who come through one door are one party (Session::party()), and together use at most
// kShareMax of the loop's time; all doors together use at most twice that. Belongs to the loop's
// thread.
class GuestDoors {
public:
    static constexpr std::size_t kDoorsMax = 255;
    static constexpr std::size_t kSessionsMax = 1024;  // of one door
    static constexpr double kShareMax = 0.2;

    // Looks at once. `route` as a SessionServer's.
    GuestDoors(EventLoop& loop, ConnectionIds& ids, std::string folder, SessionServer::Route route);
    GuestDoors(const GuestDoors&) = delete;
    GuestDoors& operator=(const GuestDoors&) = delete;
    ~GuestDoors();

    [[nodiscard]] std::size_t size() const { return doors_.size(); }

private:
    // A folder's place on the disk: one that was made anew has another.
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
    std::map<std::string, Door> doors_;  // by namespace
    std::set<std::string> failed_;       // could not be opened, and that was told
    TimerId timer_{};
};

}  // namespace stoker::sidecar

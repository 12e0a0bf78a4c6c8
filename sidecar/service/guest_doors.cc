#include "sidecar/service/guest_doors.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/domain/node_directory.h"
#include "common/log/log.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds{500};
constexpr std::size_t kNameMax = 63;
constexpr std::size_t kNamesLookedAt = 4096;

bool is_alphanumeric(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

}  // namespace

bool is_namespace_name(std::string_view name) {
    return !name.empty() && name.size() <= kNameMax && is_alphanumeric(name.front()) &&
           is_alphanumeric(name.back()) && std::ranges::all_of(name, [](char letter) {
               return is_alphanumeric(letter) || letter == '-';
           });
}

GuestDoors::Limits GuestDoors::Limits::of(std::uint64_t descriptors_max) {
    constexpr std::uint64_t kSessionsMin = 64;
    Limits limits;
    limits.sessions = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(descriptors_max / 16, kSessionsMin, limits.sessions));
    return limits;
}

GuestDoors::Limits GuestDoors::Limits::of_process() {
    rlimit descriptors{};
    return of(::getrlimit(RLIMIT_NOFILE, &descriptors) == 0 ? descriptors.rlim_cur : 0);
}

GuestDoors::GuestDoors(
    EventLoop& loop,
    ConnectionIds& ids,
    std::string folder,
    SessionServer::Route route,
    Limits limits)
    : loop_(loop),
      ids_(ids),
      folder_(std::move(folder)),
      route_(std::move(route)),
      timer_(loop) {
    places_->places = limits.sessions;
    room_->bytes_max = limits.room_bytes;
    room_->little = limits.little;
    look();
}

std::size_t GuestDoors::session_count() const {
    std::size_t count = 0;
    for (const auto& [name, door] : doors_) {
        count += door.server->session_count();
    }
    return count;
}

std::map<std::string, GuestDoors::Place> GuestDoors::find_folders() const {
    std::map<std::string, Place> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir(folder_.c_str()), ::closedir};
    if (folder == nullptr) {
        return found;  // no guests/ folder means no guests
    }
    for (std::size_t names = 0; names < kNamesLookedAt; ++names) {
        const dirent* entry = ::readdir(folder.get());
        if (entry == nullptr) {
            break;
        }

        struct stat status {};

        const bool is_folder =
            is_namespace_name(entry->d_name) &&
            ::fstatat(::dirfd(folder.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(status.st_mode);
        if (is_folder) {
            found[entry->d_name] = {status.st_dev, status.st_ino};
        }
    }
    return found;
}

void GuestDoors::look() {
    const auto found = find_folders();
    std::erase_if(doors_, [&found](const auto& entry) {
        const auto folder = found.find(entry.first);
        const bool is_gone = folder == found.end() || folder->second != entry.second.place;
        if (is_gone) {
            log::info("closed the socket for a guest namespace", {{"namespace", entry.first}});
        }
        return is_gone;
    });
    std::erase_if(failed_, [&found](const std::string& name) { return !found.contains(name); });
    for (const auto& [name, place] : found) {
        if (!doors_.contains(name) && doors_.size() < kDoorsMax) {
            open(name, place);
        }
    }
    share_time();
    timer_.run_in(kLookInterval, [this] { look(); });
}

void GuestDoors::open(const std::string& name, Place place) {
    SessionServerOptions options;
    options.path = fmt::format("{}/{}/{}", folder_, name, domain::kLeaderSocket);
    options.mode = 0666;
    options.sessions_max = kSessionsMax;
    options.sidecar_sessions_max = kSessionsMax;
    options.guest = name;
    options.party = free_party();
    options.sidecar = options.party.value();
    options.throttle = std::make_shared<Throttle>(loop_, kShareMax);
    options.places = places_;
    options.room->bytes_max = room_->bytes_max / 2;
    options.room->little = room_->little;
    options.room->whole = room_;
    Door door{place, options.party, options.throttle, nullptr};
    auto server = SessionServer::listen(loop_, ids_, std::move(options), route_);
    if (!server) {
        if (failed_.insert(name).second) {
            log::warning(
                "cannot open the socket for a guest namespace",
                {{"namespace", name}, {"error", server.error().message}});
        }
        return;
    }
    failed_.erase(name);
    log::info("opened the socket for a guest namespace", {{"namespace", name}});
    door.server = *std::move(server);
    doors_.emplace(name, std::move(door));
}

// The lowest party number that no open guest socket has.
Party GuestDoors::free_party() const {
    for (std::uint8_t number = 1; number < kDoorsMax; ++number) {
        const bool is_taken = std::ranges::any_of(
            doors_, [number](const auto& entry) { return entry.second.party == Party{number}; });
        if (!is_taken) {
            return Party{number};
        }
    }
    return Party{kDoorsMax};
}

void GuestDoors::share_time() {
    const auto busy = std::ranges::count_if(
        doors_, [](const auto& entry) { return entry.second.server->session_count() > 0; });
    const double share = 2 * kShareMax / static_cast<double>(std::max<std::ptrdiff_t>(busy, 2));
    for (auto& [name, door] : doors_) {
        door.throttle->set_share(share);
    }
}

}  // namespace stoker::sidecar

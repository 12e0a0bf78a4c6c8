#pragma once

#include <map>
#include <string>
#include <tuple>

#include "common/base/clock.h"
#include "common/base/guarded.h"

namespace stoker::control {

// Bytes that sweeps have removed, so that older reports of them are ignored. Kept in memory: after
// a restart, a swept place is swept once more. Thread-safe.
class SweepLedger {
public:
    void note(
        const std::string& pool, const std::string& node, const std::string& uid, WallTime at) {
        (*removed_.lock())[{pool, node, uid}] = {at};
    }

    // Notes that a leader reported at `at`. A report after the last sweep began means that bytes
    // may lie there again.
    void note_leader(
        const std::string& pool, const std::string& node, const std::string& uid, WallTime at) {
        const auto removed = removed_.lock();
        const auto found = removed->find({pool, node, uid});
        if (found != removed->end() && found->second.at < at) {
            found->second.refilled = true;
        }
    }

    // Whether note_leader() has noted a report from after the last sweep began.
    [[nodiscard]] bool is_refilled(
        const std::string& pool, const std::string& node, const std::string& uid) const {
        const auto removed = removed_.lock();
        const auto found = removed->find({pool, node, uid});
        return found != removed->end() && found->second.refilled;
    }

    // True if a sweep has removed the bytes since `last_heard`.
    [[nodiscard]] bool is_gone(
        const std::string& pool,
        const std::string& node,
        const std::string& uid,
        WallTime last_heard) const {
        const auto removed = removed_.lock();
        const auto found = removed->find({pool, node, uid});
        return found != removed->end() && found->second.at >= last_heard;
    }

    // Call it when the dataset itself is gone.
    void forget(const std::string& uid) {
        std::erase_if(
            *removed_.lock(), [&](const auto& entry) { return std::get<2>(entry.first) == uid; });
    }

private:
    struct Sweep {
        WallTime at{};  // when the last sweep began
        bool refilled = false;
    };

    mutable Guarded<std::map<std::tuple<std::string, std::string, std::string>, Sweep>> removed_;
};

}  // namespace stoker::control

#pragma once

#include <cstdint>
#include <string>

#include "common/runtime/event_loop.h"
#include "common/runtime/workers.h"
#include "sidecar/device/device.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/service/session.h"

namespace stoker::sidecar {

// Shared by all datasets of one sidecar; must outlive them.
struct SidecarParts {
    EventLoop& loop;
    Workers& io;  // for stores, checksums and plans
    MakeWorkers make_workers;
    Device& device;
    ConnectionIds& connection_ids;
    std::string boot_id;
    std::string job_uid;           // the pod's TrainingJob; empty: none
    std::string attempt_uid;       // the job's current batch/v1 Job
    std::uint64_t sidecar_id = 0;  // random id of this process
    bool operator_grants = false;
    std::string pod_namespace{};
    std::string node{};
    PeerNetwork* peers = nullptr;  // nullptr: no peers
    std::string peer_address{};    // "host:port", where peers reach us
};

}  // namespace stoker::sidecar

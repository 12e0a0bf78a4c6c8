#include "tests/support/running_sidecar.h"

#include <random>
#include <utility>

#include "common/base/check.h"
#include "common/runtime/worker_pool.h"

namespace stoker::test {

RunningSidecar::RunningSidecar(
    sidecar::SidecarConfig config,
    sidecar::Device& device,
    sidecar::OriginFactory make_origin,
    std::string boot_id,
    const MakePeers& make_peers)
    : config_(std::move(config)),
      peers_(make_peers ? make_peers(loop_) : nullptr) {
    auto started = sidecar::Sidecar::start(
        config_,
        loop_,
        {device,
         std::move(boot_id),
         std::random_device{}() | std::uint64_t{std::random_device{}()} << 32U,
         [](const std::string& name, std::size_t count) {
             return std::make_unique<WorkerPool>(name, count);
         },
         peers_.get()},
        make_origin);
    STOKER_CHECK(started.has_value(), started ? "" : started.error().message.c_str());
    sidecar_ = *std::move(started);
    thread_ = std::thread{[this] { loop_.run(); }};
}

RunningSidecar::~RunningSidecar() {
    loop_.stop();
    thread_.join();
    sidecar_.reset();
}

}  // namespace stoker::test

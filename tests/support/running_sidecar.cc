#include "tests/support/running_sidecar.h"

#include <utility>

#include "common/base/check.h"

namespace stoker::test {

RunningSidecar::RunningSidecar(
    sidecar::SidecarConfig config,
    sidecar::Device& device,
    sidecar::OriginFactory make_origin,
    std::string boot_id)
    : config_(std::move(config)) {
    auto started = sidecar::Sidecar::start(config_, loop_, device, make_origin, std::move(boot_id));
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

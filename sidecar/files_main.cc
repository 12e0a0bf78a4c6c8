// stoker-files: the pod's datasets as read-only files. Composition root: parse, build, run.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/program/program.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/signals.h"
#include "sidecar/attached/begin_attached.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/files/files_program.h"

namespace stoker::files {
namespace {

constexpr std::string_view kName = "stoker-files";

Status run(const sidecar::SidecarConfig& config) {
    const SystemClock clock;
    EventLoop loop{clock};
    const StopSignals signals{loop, [&](int signal) {
                                  log::info("stopping", {{"signal", signal}});
                                  loop.stop();
                              }};
    const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
    STOKER_TRY(const auto program, FilesProgram::start(config, lookup, clock, {}));
    loop.run();
    return {};
}

int start(const std::vector<std::string_view>& arguments) {
    const auto config = attached::begin_attached(kName, arguments);
    if (!config) {
        return config.error();
    }
    raise_descriptor_limit();
    return exit_status(run(*config));
}

}  // namespace
}  // namespace stoker::files

int main(int argc, char** argv) {
    return stoker::files::start({argv + 1, argv + argc});
}

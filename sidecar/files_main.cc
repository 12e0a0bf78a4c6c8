// stoker-files: the pod's datasets as read-only files. Composition root: parse, build, run.
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/flags/flags.h"
#include "common/log/log.h"
#include "common/program/program.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/signals.h"
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
    std::string config_path;
    const std::vector<FlagGroup> groups = {
        {"Settings",
         {{"config",
           "FILE",
           "the sidecar's settings; without it they are the text in $STOKER_SIDECAR_CONFIG",
           text_into(config_path)}}}};
    if (const auto done = begin_program(kName, groups, arguments)) {
        return *done;
    }
    const auto config = sidecar::load_sidecar_config(config_path, find_environment);
    if (!config) {
        return refuse_to_run(kName, config.error().prefixed("settings are wrong"));
    }
    raise_descriptor_limit();
    if (const auto status = run(*config); !status) {
        log::error(
            "cannot run",
            {{"code", to_string(status.error().code)}, {"error", status.error().message}});
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace stoker::files

int main(int argc, char** argv) {
    return stoker::files::start({argv + 1, argv + argc});
}

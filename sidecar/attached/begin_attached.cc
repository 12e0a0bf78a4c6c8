#include "sidecar/attached/begin_attached.h"

#include <string>
#include <utility>

#include "common/flags/flags.h"
#include "common/program/program.h"

namespace stoker::attached {

tl::expected<sidecar::SidecarConfig, int> begin_attached(
    std::string_view name, const std::vector<std::string_view>& arguments) {
    std::string config_path;
    const std::vector<FlagGroup> groups = {
        {"Settings",
         {{"config",
           "FILE",
           "the sidecar's settings; without it they are the text in $STOKER_SIDECAR_CONFIG",
           text_into(config_path)}}}};
    if (const auto done = begin_program(name, groups, arguments)) {
        return tl::unexpected(*done);
    }
    auto config = sidecar::load_sidecar_config(config_path, find_environment);
    if (!config) {
        return tl::unexpected(refuse_to_run(name, config.error().prefixed("settings are wrong")));
    }
    return *std::move(config);
}

}  // namespace stoker::attached

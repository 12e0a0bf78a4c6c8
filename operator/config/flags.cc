#include "operator/config/flags.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace stoker::control {

namespace {

struct TextFlag {
    std::string_view name;
    std::string Flags::*value;
    std::string_view help;
};

struct SwitchFlag {
    std::string_view name;
    bool Flags::*value;
    std::string_view help;
};

constexpr std::array kTextFlags{
    TextFlag{
        "--config", &Flags::config_file, "FILE   the settings (docs/reference/operator-config.md)"},
    TextFlag{"--log-level", &Flags::log_level, "LEVEL   debug, info, warning or error"},
    TextFlag{
        "--kubeconfig",
        &Flags::kubeconfig,
        "FILE   of the cluster; without it $KUBECONFIG, or the pod's own account"},
    TextFlag{"--probe", &Flags::probe_url, "URL   ask it, and exit with 0 if it answers 200"},
};

constexpr std::array kSwitchFlags{
    SwitchFlag{
        "--check-config", &Flags::check_config, "   read the settings, print them, and exit"},
    SwitchFlag{"--version", &Flags::version, "   print the version and exit"},
    SwitchFlag{"--help", &Flags::help, "   print this and exit"},
};

constexpr std::array<std::string_view, 4> kLogLevels{"debug", "info", "warning", "error"};

bool is_log_level(std::string_view text) {
    for (const std::string_view level : kLogLevels) {
        if (level == text) {
            return true;
        }
    }
    return false;
}

// Reads the argument at `index`, and the next one where it is its value. Returns a mistake or an
// empty text.
std::string read_argument(
    std::span<const char* const> arguments, std::size_t& index, Flags& flags) {
    const std::string_view argument = arguments[index];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    for (const SwitchFlag& flag : kSwitchFlags) {
        if (flag.name == name) {
            flags.*flag.value = true;
            return equals == std::string_view::npos ? "" : fmt::format("{}: takes no value", name);
        }
    }
    for (const TextFlag& flag : kTextFlags) {
        if (flag.name != name) {
            continue;
        }
        if (equals != std::string_view::npos) {
            flags.*flag.value = argument.substr(equals + 1);
        } else if (index + 1 < arguments.size()) {
            flags.*flag.value = arguments[++index];
        }
        return (flags.*flag.value).empty() ? fmt::format("{}: needs a value", name) : "";
    }
    return fmt::format("{}: unknown; --help lists what there is", argument);
}

}  // namespace

Result<Flags> parse_flags(std::span<const char* const> arguments) {
    Flags flags;
    std::vector<std::string> mistakes;
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        std::string mistake = read_argument(arguments, index, flags);
        if (!mistake.empty()) {
            mistakes.push_back(std::move(mistake));
        }
    }
    if (!flags.log_level.empty() && !is_log_level(flags.log_level)) {
        mistakes.push_back(fmt::format("--log-level: must be {}", fmt::join(kLogLevels, ", ")));
    }
    const bool runs = !flags.version && !flags.help && flags.probe_url.empty();
    if (mistakes.empty() && runs && flags.config_file.empty()) {
        mistakes.emplace_back("--config: is required");
    }
    if (!mistakes.empty()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("{}", fmt::join(mistakes, "\n")));
    }
    return flags;
}

std::string flags_help() {
    std::string help = "stoker-operator: runs TrainingJobs and shares out their caches\n\n";
    for (const TextFlag& flag : kTextFlags) {
        help += fmt::format("  {}={}\n", flag.name, flag.help);
    }
    for (const SwitchFlag& flag : kSwitchFlags) {
        help += fmt::format("  {}{}\n", flag.name, flag.help);
    }
    return help;
}

}  // namespace stoker::control

#pragma once

#include <span>
#include <string>

#include "common/base/result.h"

namespace stoker::control {

// The command line. What a cluster's administrator sets is in the file; here is what somebody at a
// terminal needs.
struct Flags {
    std::string config_file;  // --config
    std::string log_level;    // --log-level; empty: info
    std::string kubeconfig;   // --kubeconfig; empty: $KUBECONFIG, else the pod's own account
    std::string probe_url;    // --probe: GET it, exit with 0 on 200
    bool check_config = false;
    bool version = false;
    bool help = false;

    bool operator==(const Flags&) const = default;
};

// `arguments` without the program's name. "--name=value" and "--name value" mean the same.
// kInvalidArgument: every mistake, one a line. Without --version, --help and --probe, --config must
// be there.
Result<Flags> parse_flags(std::span<const char* const> arguments);

// For --help.
std::string flags_help();

}  // namespace stoker::control

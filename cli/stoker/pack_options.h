#pragma once

#include <string>
#include <vector>

#include "cli/stoker/command.h"
#include "common/base/result.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/pack/pack_run.h"

namespace stoker::cli {

struct PackCommand {
    std::vector<std::string> sources;  // one URI, or paths of tar files; --rebuild-index: none
    bool from_tar = false;
    std::string destination;  // URI
    bool rebuild_index = false;
    bool help = false;
    bool quiet = false;
    sidecar::PackOptions pack{};
    sidecar::OriginOptions origin{};  // options of the destination
    sidecar::OriginOptions from{};    // options of an S3 source; default: those of the destination
    std::string result_file{};        // gets the result or the error; empty: none
};

// kInvalidArgument: an unknown flag or value, or a wrong number of places.
Result<PackCommand> parse_pack(const Arguments& arguments);

std::string pack_help();

}  // namespace stoker::cli

#include <cstdio>

#include <fmt/core.h>

#include "cli/advise/advise_report.h"
#include "cli/stoker/command.h"

namespace stoker::cli {

int advise_command(const Arguments& arguments) {
    AdviseOptions options;
    bool json = false;
    bool help = false;
    const std::vector<FlagGroup> groups{
        advise_flags(options),
        {"Output:",
         {{"json", "", "for programs", switch_into(json)},
          {"help", "", "this text", switch_into(help), 'h'}}}};
    Status status = parse_flags(groups, arguments);
    if (status && help) {
        fmt::print("Usage: stoker advise --trace FILE [flags]\n{}", flag_help(groups));
        return 0;
    }
    if (status && options.trace_path.empty()) {
        status = fail(ErrorCode::kInvalidArgument, "which trace? Say --trace FILE");
    }
    if (status) {
        const auto advice = advise_from_trace(options);
        if (advice) {
            fmt::print("{}", json ? advice_json(*advice) : advice_text(*advice));
            return 0;
        }
        status = fail(advice.error());
    }
    fmt::print(
        stderr,
        "stoker advise: {}\nstoker advise --help lists all flags\n",
        status.error().message);
    return 2;
}

}  // namespace stoker::cli

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "cli/stoker/command.h"
#include "cli/stoker/pack_options.h"
#include "common/program/program.h"
#include "sidecar/pack/tar_origin.h"

namespace stoker::cli {

namespace {

using sidecar::Origin;
using sidecar::PackProgress;

const char* lookup(const char* name) {
    return std::getenv(name);
}

constexpr std::uint64_t kRetrySeed = 1;

Result<std::unique_ptr<Origin>> open_source(const PackCommand& command, const Clock& clock) {
    return command.from_tar ? sidecar::make_tar_origin(command.sources)
                            : sidecar::make_origin(
                                  command.sources.front(), command.from, lookup, clock, kRetrySeed);
}

// Prints the progress at most once a second, and at the end of each phase.
class ProgressLine {
public:
    explicit ProgressLine(const Clock& clock)
        : clock_(clock) {}

    void show(const PackProgress& progress) {
        const bool is_written = progress.written + progress.found == progress.chunk_count;
        const bool is_end = is_written && progress.verified % progress.chunk_count == 0;
        const TimePoint now = clock_.now();
        if (now - last_ < std::chrono::seconds{1} && !is_end) {
            return;
        }
        last_ = now;
        fmt::print(
            stderr,
            "stoker pack: {} of {} chunks written ({} by an earlier run), {} verified\n",
            progress.written + progress.found,
            progress.chunk_count,
            progress.found,
            progress.verified);
    }

private:
    const Clock& clock_;
    TimePoint last_{};
};

Result<PackProgress> run_command(const PackCommand& command, const std::stop_token& stop) {
    const SystemClock clock;
    STOKER_TRY(
        const auto writer,
        sidecar::make_object_writer(
            command.destination, command.origin, lookup, clock, kRetrySeed));
    STOKER_TRY(
        const auto destination,
        sidecar::make_origin(command.destination, command.origin, lookup, clock, kRetrySeed));
    const sidecar::PackTarget target{*destination, *writer};
    if (command.rebuild_index) {
        return sidecar::rebuild_index(target, stop);
    }
    STOKER_TRY(const auto source, open_source(command, clock));
    ProgressLine line{clock};
    const auto show = [&](const PackProgress& progress) {
        if (!command.quiet) {
            line.show(progress);
        }
    };
    return sidecar::run_pack(*source, target, command.pack, show, stop);
}

// Whether another run would fail in the same way until the destination or the input changes.
bool is_final(const Error& error) {
    return error.code == ErrorCode::kAlreadyExists || error.code == ErrorCode::kInvalidArgument ||
           error.code == ErrorCode::kCorruption;
}

// operator/api/pack_result.h reads it.
void write_result(const std::string& path, const Result<PackProgress>& result) {
    std::ofstream file{path};
    if (result) {
        file << fmt::format(
            R"({{"chunks":{},"found":{},"samples":{},"bytes":{}}})",
            result->chunk_count,
            result->found,
            result->samples,
            result->payload_bytes);
    } else {
        file << result.error().message;
    }
    if (!file.flush()) {
        fmt::print(stderr, "stoker pack: {} cannot be written\n", path);
    }
}

int print_result(const PackCommand& command, const Result<PackProgress>& result) {
    constexpr int kFinalFailure = 3;
    if (!command.result_file.empty()) {
        write_result(command.result_file, result);
    }
    if (!result) {
        fmt::print(stderr, "stoker pack: {}\n", result.error().message);
        return is_final(result.error()) ? kFinalFailure : 1;
    }
    fmt::print(
        "{} samples ({} bytes) in {} chunks at {}: {} written, {} found, {} verified; index "
        "written\n",
        result->samples,
        result->payload_bytes,
        result->chunk_count,
        command.destination,
        result->written,
        result->found,
        result->verified);
    return 0;
}

}  // namespace

int pack_command(const Arguments& arguments) {
    const auto command = parse_pack(arguments);
    if (!command) {
        fmt::print(
            stderr,
            "stoker pack: {}\nstoker pack --help lists all flags\n",
            command.error().message);
        return 2;
    }
    if (command->help) {
        fmt::print("{}", pack_help());
        return 0;
    }
    return run_until_stopped([&](const std::stop_token& stop) {
        return print_result(*command, run_command(*command, stop));
    });
}

}  // namespace stoker::cli

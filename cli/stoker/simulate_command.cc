#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "cli/stoker/command.h"
#include "cli/stoker/simulate_options.h"
#include "cli/stoker/simulate_report.h"
#include "common/base/read_file.h"
#include "common/domain/manifest.h"
#include "sidecar/simulate/simulator.h"

namespace stoker::cli {

namespace {

Result<std::vector<std::uint64_t>> read_sizes(const std::string& path) {
    STOKER_TRY(const std::string text, read_file(path));
    const auto manifest = domain::ManifestView::open(std::as_bytes(std::span{text}));
    if (!manifest) {
        return fail(manifest.error().prefixed(path));
    }
    std::vector<std::uint64_t> sizes(manifest->sample_count());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] = manifest->size_bytes(domain::SampleId{i});
    }
    return sizes;
}

// Runs the simulation and returns the text to print.
Result<std::string> run_nodes(SimulateOptions& options) {
    std::vector<SeededOutcome> runs;
    for (const std::uint64_t seed : options.seeds) {
        options.scenario.seed = seed;
        STOKER_TRY(auto outcome, simulate::run(options.scenario));
        runs.push_back({seed, std::move(outcome)});
    }
    return options.json ? simulate_json(options.scenario, runs)
                        : simulate_text(options.scenario, runs);
}

Result<std::string> run_ranks(SimulateOptions& options) {
    std::vector<SeededFigures> runs;
    for (const std::uint64_t seed : options.seeds) {
        options.scenario.seed = seed;
        STOKER_TRY(auto figures, simulate::run_clairvoyant(options.scenario, options.clairvoyant));
        runs.push_back({seed, std::move(figures)});
    }
    return options.json ? clairvoyant_json(options, runs) : clairvoyant_text(options, runs);
}

Result<std::string> run_all(SimulateOptions& options) {
    if (!options.manifest_path.empty()) {
        STOKER_TRY(options.scenario.dataset.sizes, read_sizes(options.manifest_path));
    }
    return is_clairvoyant(options) ? run_ranks(options) : run_nodes(options);
}

}  // namespace

int simulate_command(const Arguments& arguments) {
    auto options = parse_simulate(arguments);
    if (!options) {
        fmt::print(
            stderr,
            "stoker simulate: {}\nstoker simulate --help lists all flags\n",
            options.error().message);
        return 2;
    }
    if (options->help) {
        fmt::print("{}", simulate_help());
        return 0;
    }
    const auto report = run_all(*options);
    if (!report) {
        fmt::print(stderr, "stoker simulate: {}\n", report.error().message);
        return 2;
    }
    fmt::print("{}", *report);
    return 0;
}

}  // namespace stoker::cli

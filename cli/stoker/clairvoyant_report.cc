#include <cpprest/json.h>
#include <fmt/core.h>

#include "cli/stoker/simulate_report.h"

namespace stoker::cli {

namespace {

using simulate::ClairvoyantEpoch;
using simulate::ClairvoyantFigures;
using web::json::value;

std::uint64_t reads_of(const ClairvoyantEpoch& epoch) {
    return epoch.local + epoch.peer + epoch.origin;
}

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string_view name_of(simulate::Placement placement) {
    return placement == simulate::Placement::kPooled ? "pooled" : "own";
}

value epoch_json(const ClairvoyantEpoch& epoch, std::uint64_t number) {
    value json = value::object(true);
    json["epoch"] = value::number(number);
    json["local"] = value::number(epoch.local);
    json["peer"] = value::number(epoch.peer);
    json["origin"] = value::number(epoch.origin);
    json["originBytes"] = value::number(epoch.origin_bytes.count());
    json["seconds"] = value::number(epoch.seconds);
    return json;
}

value run_json(const SeededFigures& run) {
    value epochs = value::array();
    for (std::size_t epoch = 0; epoch < run.figures.epochs.size(); ++epoch) {
        epochs[epoch] = epoch_json(run.figures.epochs[epoch], epoch);
    }
    value json = value::object(true);
    json["seed"] = value::number(run.seed);
    json["favouriteShare"] = value::number(run.figures.favourite_share);
    json["above"] = value::number(run.figures.above);
    json["originPerSample"] = value::number(run.figures.origin_per_sample);
    json["epochs"] = epochs;
    return json;
}

std::string summary_of(const SeededFigures& run, const simulate::ClairvoyantSpec& spec) {
    const std::string expected =
        spec.placement == simulate::Placement::kOwn
            ? fmt::format(" (by the binomial law {:.1f}%)", 100 * run.figures.favourite_expected)
            : "";
    return fmt::format(
        "\nseed {}: {:.1f}% of the reads are of samples that the rank keeps{};\n  a rank reads "
        "{:.0f} samples above {} times (by the law {:.1f}); each comes {:.3f} times from the "
        "origin\n",
        run.seed,
        100 * run.figures.favourite_share,
        expected,
        run.figures.above,
        spec.threshold,
        run.figures.above_expected,
        run.figures.origin_per_sample);
}

}  // namespace

std::string clairvoyant_text(
    const SimulateOptions& options, const std::vector<SeededFigures>& runs) {
    const auto& spec = options.clairvoyant;
    const ClairvoyantFigures& first = runs.front().figures;
    std::string text = fmt::format(
        "{} samples, {} ranks, {} epochs; placement {}\n\n{:>5} {:>10} {:>8} {:>8} {:>8} {:>10} "
        "{:>9}\n",
        first.samples,
        spec.world,
        options.scenario.epochs,
        name_of(spec.placement),
        "epoch",
        "reads",
        "local",
        "peer",
        "origin",
        "bytes",
        "time");
    for (std::size_t number = 0; number < first.epochs.size(); ++number) {
        const ClairvoyantEpoch& epoch = first.epochs[number];
        const std::uint64_t reads = reads_of(epoch);
        text += fmt::format(
            "{:>5} {:>10} {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>10} {:>8.1f}s\n",
            number,
            reads,
            percent(epoch.local, reads),
            percent(epoch.peer, reads),
            percent(epoch.origin, reads),
            to_string(epoch.origin_bytes),
            epoch.seconds);
    }
    for (const SeededFigures& run : runs) {
        text += summary_of(run, spec);
    }
    return text;
}

std::string clairvoyant_json(
    const SimulateOptions& options, const std::vector<SeededFigures>& runs) {
    const auto& spec = options.clairvoyant;
    value list = value::array();
    for (const SeededFigures& run : runs) {
        list[list.size()] = run_json(run);
    }
    const ClairvoyantFigures& first = runs.front().figures;
    value json = value::object(true);
    json["samples"] = value::number(first.samples);
    json["world"] = value::number(std::uint64_t{spec.world});
    json["placement"] = value::string(std::string{name_of(spec.placement)});
    json["threshold"] = value::number(spec.threshold);
    json["aboveExpected"] = value::number(first.above_expected);
    if (spec.placement == simulate::Placement::kOwn) {
        json["favouriteShareExpected"] = value::number(first.favourite_expected);
    }
    json["reads"] = value::number(first.reads);
    json["runs"] = list;
    return json.serialize() + "\n";
}

}  // namespace stoker::cli

#include "cli/advise/advise_options.h"

#include "common/config/config_reader.h"

namespace stoker::cli {

namespace {

// Stores a value of the origin; from then on the question has an origin.
template <class Read, class Field>
auto origin_into(advise::Question& question, Field advise::Origin::*field, Read read) {
    return [&question, field, read](std::string_view text) -> Status {
        advise::Origin origin = question.origin.value_or(advise::Origin{});
        STOKER_TRY(origin.*field, read(text));
        question.origin = origin;
        return {};
    };
}

}  // namespace

FlagGroup advise_flags(AdviseOptions& options) {
    advise::Question& question = options.question;
    return {
        "From a trace:",
        {{"trace",
          "FILE",
          "reads of a program, one per line, or an S3 server access log; - for standard input",
          text_into(options.trace_path)},
         {"cache",
          "BYTES",
          "also evaluate a cache of this size, over all nodes",
          read_into(question.cache, config::parse_bytes)},
         {"window",
          "BYTES",
          "window of each sidecar, in addition to the cache (256Mi)",
          read_into(question.window, config::parse_bytes)},
         {"origin-bandwidth",
          "BYTES",
          "origin's bytes per second; it or the latency makes the advice include times (200Mi)",
          origin_into(question, &advise::Origin::bytes_per_second, config::parse_bytes)},
         {"origin-latency",
          "TIME",
          "origin's latency per request, such as 20ms (5ms)",
          origin_into(question, &advise::Origin::latency, config::parse_duration)},
         {"compute-rate",
          "N",
          "samples per second of all ranks if data is never late (the trace's rate)",
          read_into(
              question.compute_rate,
              [](std::string_view text) { return parse_number("compute-rate", text); })},
         {"batch", "N", "samples in a rank's batch (64)", count_into(question.batch)},
         {"workers", "N", "workers of each rank's loader (8)", count_into(question.workers)}}};
}

}  // namespace stoker::cli

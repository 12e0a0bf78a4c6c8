#include "tests/world/seed_runs.h"

#include <algorithm>
#include <charconv>
#include <csignal>

#include <fmt/format.h>
#include <malloc.h>

namespace stoker::world {

namespace {

const SeedRun* current = nullptr;

void handle(int signal) {
    if (const SeedRun* const run = std::exchange(current, nullptr)) {
        run->on_crash(signal);
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && rest == end ? std::optional{number} : std::nullopt;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(std::string_view text) {
    const auto dash = text.find('-');
    const auto first = parse_number(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1));
    return first && last && *first <= *last ? std::optional{std::pair{*first, *last}}
                                            : std::nullopt;
}

std::string replay_command(std::uint64_t seed) {
    return fmt::format("make simulate-world SEEDS={} LOG=1", seed);
}

std::string replay_control_command(std::uint64_t seed) {
    return fmt::format("make simulate-control SEEDS={} LOG=1", seed);
}

std::string last_lines(const std::vector<std::string>& log, std::size_t lines_max) {
    std::string text;
    for (std::size_t i = log.size() - std::min(log.size(), lines_max); i < log.size(); ++i) {
        text += log[i] + "\n";
    }
    return text;
}

SeedRun::SeedRun(std::uint64_t seed, std::string replay, const std::vector<std::string>& log)
    : seed_(seed),
      replay_(std::move(replay)),
      log_(log) {
    current = this;
}

SeedRun::~SeedRun() {
    current = nullptr;
}

void SeedRun::on_crash(int signal) const {
    fmt::print(
        stderr,
        "{}seed {} crashed with signal {}\nreplay with: {}\n",
        last_lines(log_, kLinesMax),
        seed_,
        signal,
        replay_);
}

void keep_freed_memory() {
    constexpr int kLargest = 32 << 20;  // the largest threshold that glibc accepts
    ::mallopt(M_MMAP_THRESHOLD, kLargest);
    ::mallopt(M_TRIM_THRESHOLD, 8 * kLargest);
    ::mallopt(M_TOP_PAD, kLargest);
}

void catch_crashes() {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
        std::signal(signal, handle);
    }
    std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace stoker::world

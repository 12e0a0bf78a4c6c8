#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Shared by the programs that run simulated worlds by seed, and by their tests.
namespace stoker::world {

constexpr std::size_t kLinesMax = 400;  // of a failing seed's log

std::optional<std::uint64_t> parse_number(std::string_view text);

// FIRST-LAST, or one seed; nullopt: neither, or LAST is less than FIRST.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(std::string_view text);

// The command that runs a seed of World, or of ControlWorld, again with its log.
std::string replay_command(std::uint64_t seed);
std::string replay_control_command(std::uint64_t seed);

// The last lines of a log, each with its line break.
std::string last_lines(const std::vector<std::string>& log, std::size_t lines_max);

// Lives while a program runs one seed. If the product crashes meanwhile, prints the end of the log,
// which tells the situation, and the command that runs the seed again. Only one SeedRun at a time;
// the log must outlive it.
class SeedRun {
public:
    SeedRun(std::uint64_t seed, std::string replay, const std::vector<std::string>& log);
    SeedRun(const SeedRun&) = delete;
    SeedRun& operator=(const SeedRun&) = delete;
    ~SeedRun();

    // Prints the end of the log.
    void on_crash(int signal) const;

private:
    std::uint64_t seed_;
    std::string replay_;
    const std::vector<std::string>& log_;
};

// Lets the allocator keep freed memory, which the next seed needs again: returning it to the kernel
// and clearing it anew costs more than the memory is worth.
void keep_freed_memory();

// Installs SeedRun's signal handlers. A closed socket raises no signal from then on.
void catch_crashes();

}  // namespace stoker::world

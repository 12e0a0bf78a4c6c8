#pragma once

#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "common/base/prng.h"
#include "sidecar/simulate/laws.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

// Relative tolerance of a figure. Half of it is for the model (finite N, whole samples), half is
// four standard errors of the mean: workloads get enough epochs for that.
constexpr double kTolerance = .02;
constexpr double kSlack = .01;  // of a floor that is exact only for very many samples

// Expects a measured figure within kTolerance of `figure`.
inline Expected about(double figure) {
    return within(figure, kTolerance * figure);
}

// Draws workloads and notes what it drew for the row's `parameters`. Half of the workloads have
// fewer than 65,536 samples: from there on samplers rebuild their ranks in slices. Not thread-safe.
class RandomWorkload {
public:
    explicit RandomWorkload(std::uint64_t seed);

    // A log-uniform whole number of least..most.
    std::uint64_t count(const char* name, std::uint64_t least, std::uint64_t most);

    // A number with three decimals.
    double number(const char* name, double least, double most);

    std::uint64_t samples(std::uint64_t least = 1000, std::uint64_t most = 300'000);

    // One job with contract exact and no cache.
    Scenario one_job(std::uint64_t samples_min = 1000, std::uint64_t samples_max = 300'000);

    void draw_jobs(Scenario& scenario, std::uint64_t least);  // up to 4
    void draw_sizes(Scenario& scenario);                      // equal or log-normal
    void draw_share(Scenario& scenario, double least, double most);

    // Draws the batch size and how many batches are read ahead: all jobs have at most a fiftieth of
    // the dataset in flight, so that few fetches serve two jobs by chance.
    void draw_loader(Scenario& scenario);

    // Sets scenario.epochs so that, after the first `discard` epochs, enough requests follow to
    // measure a share `p` of them to within 1 % of p (four standard errors).
    void draw_epochs(Scenario& scenario, double p);

    std::uint64_t seed() { return prng_(); }

    [[nodiscard]] LawRow row(const char* what, const Expected& expected, double measured) const {
        return {what, parameters_, expected, measured};
    }

private:
    template <class Value>
    Value note(const char* name, Value value) {
        parameters_ += fmt::format(" {}={}", name, value);
        return value;
    }

    Prng prng_;
    std::string parameters_;
};

}  // namespace stoker::simulate

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/guarded.h"

// Prometheus metrics. A program declares all its families in one struct over one Registry, updates
// them from any thread at the cost of an atomic addition, and serves Registry::expose() at
// /metrics.
namespace stoker::metrics {

// Only grows. Thread-safe.
class Counter {
public:
    // `amount` must not be negative.
    void add(double amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }

    [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<double> value_{0};
};

// Goes up and down. Thread-safe.
class Gauge {
public:
    void set(double value) { value_.store(value, std::memory_order_relaxed); }

    void add(double amount) { value_.fetch_add(amount, std::memory_order_relaxed); }

    [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<double> value_{0};
};

// Counts observations by size. Thread-safe; while another thread observes, a reader may see a count
// whose sum lacks that observation.
class Histogram {
public:
    // `bounds` are the upper ends of the buckets, ascending; an unbounded one is added.
    explicit Histogram(std::vector<double> bounds);

    void observe(double value);

    [[nodiscard]] const std::vector<double>& bounds() const { return bounds_; }

    // Counts per bucket, not cumulative; one more than there are bounds.
    [[nodiscard]] std::vector<std::uint64_t> counts() const;

    [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

private:
    std::vector<double> bounds_;
    std::vector<std::atomic<std::uint64_t>> counts_;
    std::atomic<double> sum_{0};
};

// Returns `count` bounds: first, first*factor, first*factor^2, …
std::vector<double> exponential_bounds(double first, double factor, std::size_t count);

using LabelValues = std::vector<std::string>;

// One metric name with its help text and all its series. Private to the registry except for the
// typed families below.
class FamilyBase {
public:
    FamilyBase(std::string name, std::string help, std::vector<std::string> label_names);
    virtual ~FamilyBase() = default;

    // Appends HELP, TYPE and every series in the order of its label values.
    void expose(std::string& out);

    [[nodiscard]] const std::string& name() const { return name_; }

protected:
    [[nodiscard]] virtual std::string_view type() const = 0;
    virtual void expose_series(std::string& out) = 0;

    // Formats "{a=\"1\",b=\"2\"}", or nothing without labels. `extra` ("le=\"1\"") comes last.
    [[nodiscard]] std::string label_text(
        const LabelValues& values, std::string_view extra = "") const;
    void check_label_count(const LabelValues& values) const;

private:
    std::string name_;
    std::string help_;
    std::vector<std::string> label_names_;
};

// A family of counters, gauges or histograms. Thread-safe.
template <class Metric>
class Family final : public FamilyBase {
public:
    using Maker = std::function<std::shared_ptr<Metric>()>;

    Family(
        std::string name,
        std::string help,
        std::vector<std::string> label_names,
        Maker make = [] { return std::make_shared<Metric>(); })
        : FamilyBase(std::move(name), std::move(help), std::move(label_names)),
          make_(std::move(make)) {}

    // The series with these label values, in the order of the label names; created at first use.
    // Takes a lock: keep the pointer if it is updated often. It stays valid after the series is
    // removed.
    std::shared_ptr<Metric> with(LabelValues values) {
        check_label_count(values);
        auto series = series_.lock();
        auto& metric = (*series)[std::move(values)];
        if (!metric) {
            metric = make_();
        }
        return metric;
    }

    // Ends the exposition of the series; with() would create a new one.
    void remove(const LabelValues& values) { series_.lock()->erase(values); }

protected:
    [[nodiscard]] std::string_view type() const override;
    void expose_series(std::string& out) override;

private:
    Maker make_;
    Guarded<std::map<LabelValues, std::shared_ptr<Metric>>> series_;
};

using CounterFamily = Family<Counter>;
using GaugeFamily = Family<Gauge>;
using HistogramFamily = Family<Histogram>;

// Owns the families, which live as long as it does. Thread-safe. Aborts on a name that is not
// [a-zA-Z_:][a-zA-Z0-9_:]* or is declared twice, which is a bug.
class Registry {
public:
    CounterFamily& counter_family(
        std::string name, std::string help, std::vector<std::string> label_names);
    GaugeFamily& gauge_family(
        std::string name, std::string help, std::vector<std::string> label_names);
    HistogramFamily& histogram_family(
        std::string name,
        std::string help,
        std::vector<std::string> label_names,
        std::vector<double> bounds);

    // A family of one series without labels.
    Counter& counter(std::string name, std::string help);
    Gauge& gauge(std::string name, std::string help);
    Histogram& histogram(std::string name, std::string help, std::vector<double> bounds);

    // All families in text format 0.0.4, sorted by name, then by label values.
    [[nodiscard]] std::string expose() const;

    static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

private:
    template <class T>
    T& add(std::unique_ptr<T> family);

    mutable Guarded<std::map<std::string, std::unique_ptr<FamilyBase>>> families_;
};

}  // namespace stoker::metrics

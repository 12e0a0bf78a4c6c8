#include "common/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "common/base/check.h"

namespace stoker::metrics {

namespace {

std::string number_text(double value) {
    if (std::isnan(value)) {
        return "NaN";
    }
    if (std::isinf(value)) {
        return value > 0 ? "+Inf" : "-Inf";
    }
    return fmt::format("{}", value);
}

std::string escaped(std::string_view text, bool quote_too) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (c == '\n') {
            out += "\\n";
        } else if (c == '\\' || (quote_too && c == '"')) {
            out += '\\';
            out += c;
        } else {
            out += c;
        }
    }
    return out;
}

bool is_valid_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
               (c >= '0' && c <= '9');
    };
    return !name.empty() && (name.front() < '0' || name.front() > '9') &&
           std::all_of(name.begin(), name.end(), allowed);
}

void expose_one(
    std::string& out, const std::string& name, const std::string& labels, double value) {
    out += fmt::format("{}{} {}\n", name, labels, number_text(value));
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)),
      counts_(bounds_.size() + 1) {
    STOKER_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()), "bucket bounds must ascend");
}

void Histogram::observe(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
    return {counts_.begin(), counts_.end()};
}

std::vector<double> exponential_bounds(double first, double factor, std::size_t count) {
    std::vector<double> bounds(count);
    for (double& bound : bounds) {
        bound = first;
        first *= factor;
    }
    return bounds;
}

FamilyBase::FamilyBase(std::string name, std::string help, std::vector<std::string> label_names)
    : name_(std::move(name)),
      help_(std::move(help)),
      label_names_(std::move(label_names)) {
    STOKER_CHECK(is_valid_name(name_), name_.c_str());
    for (const std::string& label : label_names_) {
        STOKER_CHECK(is_valid_name(label) && label != "le", label.c_str());
    }
}

void FamilyBase::expose(std::string& out) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, escaped(help_, false), name_, type());
    expose_series(out);
}

std::string FamilyBase::label_text(const LabelValues& values, std::string_view extra) const {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
        text += fmt::format(
            "{}{}=\"{}\"", i == 0 ? "" : ",", label_names_[i], escaped(values[i], true));
    }
    if (!extra.empty()) {
        text += text.empty() ? "" : ",";
        text += extra;
    }
    return text.empty() ? text : "{" + text + "}";
}

void FamilyBase::check_label_count(const LabelValues& values) const {
    STOKER_CHECK(values.size() == label_names_.size(), name_.c_str());
}

template <>
std::string_view CounterFamily::type() const {
    return "counter";
}

template <>
std::string_view GaugeFamily::type() const {
    return "gauge";
}

template <>
std::string_view HistogramFamily::type() const {
    return "histogram";
}

template <>
void CounterFamily::expose_series(std::string& out) {
    for (const auto& [values, counter] : *series_.lock()) {
        expose_one(out, name(), label_text(values), counter->value());
    }
}

template <>
void GaugeFamily::expose_series(std::string& out) {
    for (const auto& [values, gauge] : *series_.lock()) {
        expose_one(out, name(), label_text(values), gauge->value());
    }
}

template <>
void HistogramFamily::expose_series(std::string& out) {
    for (const auto& [values, histogram] : *series_.lock()) {
        const auto counts = histogram->counts();
        const auto& bounds = histogram->bounds();
        std::uint64_t total = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            total += counts[i];
            const std::string end = i < bounds.size() ? number_text(bounds[i]) : "+Inf";
            const std::string labels = label_text(values, fmt::format("le=\"{}\"", end));
            expose_one(out, name() + "_bucket", labels, static_cast<double>(total));
        }
        expose_one(out, name() + "_sum", label_text(values), histogram->sum());
        expose_one(out, name() + "_count", label_text(values), static_cast<double>(total));
    }
}

template <class T>
T& Registry::add(std::unique_ptr<T> family) {
    T& added = *family;
    const bool is_new = families_.lock()->emplace(added.name(), std::move(family)).second;
    STOKER_CHECK(is_new, added.name().c_str());
    return added;
}

CounterFamily& Registry::counter_family(
    std::string name, std::string help, std::vector<std::string> label_names) {
    return add(
        std::make_unique<CounterFamily>(std::move(name), std::move(help), std::move(label_names)));
}

GaugeFamily& Registry::gauge_family(
    std::string name, std::string help, std::vector<std::string> label_names) {
    return add(
        std::make_unique<GaugeFamily>(std::move(name), std::move(help), std::move(label_names)));
}

HistogramFamily& Registry::histogram_family(
    std::string name,
    std::string help,
    std::vector<std::string> label_names,
    std::vector<double> bounds) {
    return add(std::make_unique<HistogramFamily>(
        std::move(name), std::move(help), std::move(label_names), [bounds = std::move(bounds)] {
            return std::make_shared<Histogram>(bounds);
        }));
}

Counter& Registry::counter(std::string name, std::string help) {
    return *counter_family(std::move(name), std::move(help), {}).with({});
}

Gauge& Registry::gauge(std::string name, std::string help) {
    return *gauge_family(std::move(name), std::move(help), {}).with({});
}

Histogram& Registry::histogram(std::string name, std::string help, std::vector<double> bounds) {
    return *histogram_family(std::move(name), std::move(help), {}, std::move(bounds)).with({});
}

std::string Registry::expose() const {
    std::string out;
    for (const auto& [name, family] : *families_.lock()) {
        family->expose(out);
    }
    return out;
}

}  // namespace stoker::metrics

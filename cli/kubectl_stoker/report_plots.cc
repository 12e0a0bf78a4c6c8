#include "cli/kubectl_stoker/report_plots.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/kubectl_stoker/curve_plot.h"
#include "cli/kubectl_stoker/html.h"

namespace stoker::cli {

namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 90;
constexpr double kTop = 25;
constexpr double kPlotWidth = 600;
constexpr double kPlotHeight = 200;

std::string label(double x, double y, const char* anchor, const std::string& text) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
        x,
        y,
        anchor,
        escaped(text));
}

// Scales of the curve's plot: bytes to the right, bytes/s upwards, both from zero.
struct Axes {
    double bytes_max = 1;
    double rate_max = 1;

    [[nodiscard]] double x_of(Bytes bytes) const {
        return kLeft + kPlotWidth * std::clamp(to_double(bytes) / bytes_max, 0.0, 1.0);
    }

    [[nodiscard]] double y_of(double rate) const {
        return kTop + kPlotHeight * (1 - std::clamp(rate / rate_max, 0.0, 1.0));
    }

    // Grid lines and their labels.
    [[nodiscard]] std::string svg() const {
        std::string svg;
        for (int i = 0; i <= 4; ++i) {
            const double rate = rate_max * i / 4;
            const Bytes bytes{static_cast<std::uint64_t>(bytes_max * i / 4)};
            svg += fmt::format(
                "<line stroke=\"#d8dee4\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
                kLeft,
                kLeft + kPlotWidth,
                y_of(rate));
            svg += label(kLeft - 8, y_of(rate) + 4, "end", rate_text(rate));
            svg += label(x_of(bytes), kTop + kPlotHeight + 18, "middle", to_string(bytes));
        }
        return svg + label(
                         kLeft + kPlotWidth / 2,
                         kTop + kPlotHeight + 38,
                         "middle",
                         "bytes cached on all its nodes");
    }
};

}  // namespace

std::string curve_svg(const std::vector<control::CurvePoint>& points, Bytes target) {
    const Axes axes{
        std::max(to_double(points.back().cached), 1.0), std::max(points.back().rate, 1.0)};
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"speed over cached bytes\">\n",
        kWidth,
        kTop + kPlotHeight + 45);
    svg += axes.svg() + "<polyline fill=\"none\" stroke=\"#0b5cad\" stroke-width=\"2.5\" points=\"";
    for (const control::CurvePoint& point : points) {
        svg += fmt::format("{:.1f},{:.1f} ", axes.x_of(point.cached), axes.y_of(point.rate));
    }
    const double now = point_at(points, target).rate;
    const double x = axes.x_of(target);
    const double y = axes.y_of(now);
    svg +=
        fmt::format("\"/>\n<circle fill=\"#c2410c\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x, y);
    // The curve never falls, so a label below right or above left of the mark does not cover it.
    const bool is_last = x > kLeft + kPlotWidth * 0.75;
    svg += label(
        x + (is_last ? -10 : 10),
        y + (is_last ? -8 : 20),
        is_last ? "end" : "start",
        fmt::format("{} with {}", rate_text(now), to_string(target)));
    return svg + "</svg>\n";
}

std::string bar_svg(const std::vector<BarPart>& parts) {
    Bytes total;
    for (const BarPart& part : parts) {
        total += part.bytes;
    }
    if (total == Bytes::zero()) {
        return "";
    }
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} 60\" role=\"img\" aria-label=\"bytes by source\">\n", kWidth);
    double x = 0;
    double text_x = 0;
    for (const BarPart& part : parts) {
        const double share = to_double(part.bytes) / to_double(total);
        svg += fmt::format(
            "<rect x=\"{:.1f}\" y=\"5\" width=\"{:.1f}\" height=\"24\" fill=\"{}\"/>\n",
            x,
            share * kWidth,
            part.colour);
        svg += fmt::format(
            "<rect x=\"{:.1f}\" y=\"40\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
            text_x,
            part.colour);
        svg += label(
            text_x + 18,
            51,
            "start",
            fmt::format("{}: {} ({:.0f} %)", part.name, to_string(part.bytes), 100 * share));
        x += share * kWidth;
        text_x += kWidth / 2;
    }
    return svg + "</svg>\n";
}

}  // namespace stoker::cli

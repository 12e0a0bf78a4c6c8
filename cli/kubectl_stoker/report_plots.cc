#include "cli/kubectl_stoker/report_plots.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/kubectl_stoker/curve_plot.h"
#include "cli/kubectl_stoker/html.h"

namespace stoker::cli {

namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 90;
constexpr double kTop = 15;
constexpr double kPlotWidth = 600;
constexpr double kPlotHeight = 200;

double to_double(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

}  // namespace

std::string curve_svg(const std::vector<control::CurvePoint>& points, Bytes target) {
    const double end = std::max(to_double(points.back().cached), 1.0);
    const double most = std::max(points.back().rate, 1.0);
    const auto x_of = [end](Bytes bytes) {
        return kLeft + kPlotWidth * std::clamp(to_double(bytes) / end, 0.0, 1.0);
    };
    const auto y_of = [most](double rate) {
        return kTop + kPlotHeight * (1 - std::clamp(rate / most, 0.0, 1.0));
    };
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"speed over cached bytes\">\n",
        kWidth,
        kTop + kPlotHeight + 45);
    for (int i = 0; i <= 4; ++i) {
        const double rate = most * i / 4;
        svg += fmt::format(
            "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
            kLeft,
            kLeft + kPlotWidth,
            y_of(rate));
        svg += label(kLeft - 8, y_of(rate) + 4, "end", rate_text(rate));
        const Bytes bytes{static_cast<std::uint64_t>(end * i / 4)};
        svg += label(x_of(bytes), kTop + kPlotHeight + 18, "middle", to_string(bytes));
    }
    svg += "<polyline class=\"curve\" points=\"";
    for (const control::CurvePoint& point : points) {
        svg += fmt::format("{:.1f},{:.1f} ", x_of(point.cached), y_of(point.rate));
    }
    const double now = rate_at(points, target);
    svg += fmt::format(
        "\"/>\n<circle class=\"now\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x_of(target), y_of(now));
    const bool is_right = x_of(target) > kLeft + kPlotWidth / 2;
    svg += label(
        x_of(target) + (is_right ? -10 : 10),
        std::min(y_of(now) + 20, kTop + kPlotHeight - 4),
        is_right ? "end" : "start",
        fmt::format("{} with {}", rate_text(now), to_string(target)));
    svg += label(
        kLeft + kPlotWidth / 2, kTop + kPlotHeight + 38, "middle", "bytes cached on all its nodes");
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

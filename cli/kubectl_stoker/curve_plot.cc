#include "cli/kubectl_stoker/curve_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stoker::cli {

namespace {

using control::CurvePoint;

constexpr std::size_t kWidth = 61;
constexpr std::size_t kHeight = 9;
constexpr std::size_t kLabel = 11;

std::size_t scaled(double value, double most, std::size_t steps) {
    const double share = most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0;
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(steps - 1)));
}

// Cached bytes at a column of the plot; the last column is `end` bytes.
Bytes bytes_at(std::size_t column, double end) {
    return Bytes{static_cast<std::uint64_t>(
        end * static_cast<double>(column) / static_cast<double>(kWidth - 1))};
}

// Writes the label unless it would overlap an earlier one.
void put(std::string& line, std::size_t at, const std::string& text) {
    const std::size_t begin = std::min(at, kWidth > text.size() ? kWidth - text.size() : 0);
    const std::size_t from = begin == 0 ? 0 : begin - 1;
    if (line.substr(from, text.size() + 2).find_first_not_of(' ') == std::string::npos) {
        line.replace(begin, text.size(), text);
    }
}

}  // namespace

double to_double(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

CurvePoint point_at(const std::vector<CurvePoint>& points, Bytes cached) {
    const double wanted = to_double(cached);
    for (std::size_t i = 1; i < points.size(); ++i) {
        const double begin = to_double(points[i - 1].cached);
        const double end = to_double(points[i].cached);
        if (wanted <= end) {
            const double into = end > begin ? (wanted - begin) / (end - begin) : 1;
            return {
                cached,
                std::lerp(points[i - 1].rate, points[i].rate, into),
                std::lerp(points[i - 1].fetched, points[i].fetched, into)};
        }
    }
    return points.back();
}

std::string rate_text(double bytes_per_second) {
    constexpr double kMax = 9e18;
    const double bounded = std::clamp(bytes_per_second, 0.0, kMax);
    return to_string(Bytes{static_cast<std::uint64_t>(bounded)}) + "/s";
}

std::string plot_curve(const std::vector<CurvePoint>& points, Bytes target) {
    const double end = to_double(points.back().cached);
    const double most = points.back().rate;
    std::vector<std::string> rows(kHeight, std::string(kWidth, ' '));
    for (std::size_t column = 0; column < kWidth; ++column) {
        const double rate = point_at(points, bytes_at(column, end)).rate;
        rows[kHeight - 1 - scaled(rate, most, kHeight)][column] = '*';
    }
    const std::size_t at = scaled(to_double(target), end, kWidth);
    const double now = point_at(points, target).rate;
    const std::size_t now_row = kHeight - 1 - scaled(now, most, kHeight);
    rows[now_row][at] = 'O';
    std::vector<std::string> labels(kHeight);
    labels[now_row] = rate_text(now);
    const std::size_t first_row = kHeight - 1 - scaled(points.front().rate, most, kHeight);
    for (const auto& [row, rate] :
         {std::pair{std::size_t{0}, most}, std::pair{first_row, points.front().rate}}) {
        if (labels[row].empty()) {
            labels[row] = rate_text(rate);
        }
    }
    std::string text;
    for (std::size_t row = 0; row < kHeight; ++row) {
        std::string line = fmt::format("{:>{}} |{}", labels[row], kLabel, rows[row]);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    std::string axis(kWidth, ' ');
    const std::string right = to_string(points.back().cached);
    const std::string here = to_string(target);
    if (target > Bytes::zero()) {
        put(axis, at >= here.size() / 2 ? at - here.size() / 2 : 0, here);
    }
    put(axis, 0, "0");
    put(axis, kWidth, right);
    axis.erase(axis.find_last_not_of(' ') + 1);
    return text + fmt::format("{:>{}} +{}\n", "0", kLabel, std::string(kWidth, '-')) +
           fmt::format("{:>{}}  {}\n", "", kLabel, axis);
}

}  // namespace stoker::cli

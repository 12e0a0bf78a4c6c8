#include "cli/stoker/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace stoker::cli {

namespace {

// Levenshtein's distance, to name the flag that was probably meant.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

std::string unknown(const std::vector<FlagGroup>& groups, std::string_view name) {
    std::string_view nearest;
    std::size_t least = std::max<std::size_t>(name.size() / 2, 2);
    std::string all;
    for (const FlagGroup& group : groups) {
        for (const Flag& flag : group.flags) {
            all += fmt::format(" --{}", flag.name);
            if (const std::size_t d = distance(name, flag.name); d <= least) {
                least = d;
                nearest = flag.name;
            }
        }
    }
    return nearest.empty() ? fmt::format("no flag --{}; there are:{}", name, all)
                           : fmt::format("no flag --{}; did you mean --{}?", name, nearest);
}

const Flag* find(const std::vector<FlagGroup>& groups, std::string_view name) {
    for (const FlagGroup& group : groups) {
        const auto found = std::ranges::find(group.flags, name, &Flag::name);
        if (found != group.flags.end()) {
            return &*found;
        }
    }
    return nullptr;
}

}  // namespace

Status parse_flags(
    const std::vector<FlagGroup>& groups, const std::vector<std::string_view>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string_view argument = arguments[i];
        if (!argument.starts_with("--")) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not a flag; flags begin with --", argument));
        }
        argument.remove_prefix(2);
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        const Flag* flag = find(groups, name);
        if (flag == nullptr) {
            return fail(ErrorCode::kInvalidArgument, unknown(groups, name));
        }
        std::string_view value;
        if (equals != std::string_view::npos) {
            value = argument.substr(equals + 1);
        } else if (!flag->value.empty()) {
            if (++i == arguments.size()) {
                return fail(
                    ErrorCode::kInvalidArgument,
                    fmt::format("--{} needs a value: {}", name, flag->value));
            }
            value = arguments[i];
        }
        if (const Status status = flag->apply(value); !status) {
            return fail(status.error().prefixed(fmt::format("--{}", name)));
        }
    }
    return {};
}

std::string flag_help(const std::vector<FlagGroup>& groups) {
    constexpr std::size_t kColumn = 30;
    std::string text;
    for (const FlagGroup& group : groups) {
        text += fmt::format("\n{}\n", group.title);
        for (const Flag& flag : group.flags) {
            const std::string left =
                fmt::format("  --{}{}{}", flag.name, flag.value.empty() ? "" : " ", flag.value);
            if (left.size() >= kColumn) {
                text += fmt::format("{}\n{:{}}{}\n", left, "", kColumn, flag.meaning);
            } else {
                text += fmt::format("{:{}}{}\n", left, kColumn, flag.meaning);
            }
        }
    }
    return text;
}

Result<double> parse_number(std::string_view what, std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("{}: '{}' is not a number", what, text));
    }
    return number;
}

Result<std::uint64_t> parse_count(std::string_view what, std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{}: '{}' is not a whole number from 0 up", what, text));
    }
    return number;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

}  // namespace stoker::cli

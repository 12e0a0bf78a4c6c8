#include "common/flags/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "common/base/split.h"

namespace stoker {

namespace {

// Levenshtein distance, to suggest the nearest flag.
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
    return nearest.empty() ? fmt::format("unknown flag --{}; there are:{}", name, all)
                           : fmt::format("unknown flag --{}; did you mean --{}?", name, nearest);
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

const Flag* find(const std::vector<FlagGroup>& groups, char letter) {
    for (const FlagGroup& group : groups) {
        const auto found = std::ranges::find(group.flags, letter, &Flag::letter);
        if (found != group.flags.end()) {
            return &*found;
        }
    }
    return nullptr;
}

// A flag as written, before its value is parsed.
struct Written {
    const Flag* flag = nullptr;
    std::string_view spelling;  // "--namespace", "-n"
    std::optional<std::string_view> value;
};

Result<Written> read_long(const std::vector<FlagGroup>& groups, std::string_view argument) {
    const std::size_t equals = argument.find('=');
    Written result;
    result.spelling = argument.substr(0, equals);
    result.flag = find(groups, result.spelling.substr(2));
    if (result.flag == nullptr) {
        return fail(ErrorCode::kInvalidArgument, unknown(groups, result.spelling.substr(2)));
    }
    if (equals != std::string_view::npos) {
        result.value = argument.substr(equals + 1);
    }
    return result;
}

Result<Written> read_short(const std::vector<FlagGroup>& groups, std::string_view argument) {
    Written result;
    result.spelling = argument.substr(0, 2);
    result.flag = find(groups, argument[1]);
    if (result.flag == nullptr) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("unknown flag {}", result.spelling));
    }
    if (argument.size() > 2) {
        const bool equals = argument[2] == '=';
        result.value = argument.substr(equals ? 3 : 2);
    }
    return result;
}

// Applies the flag at `index`; advances `index` if the value is the next argument.
Status apply_flag(
    const Written& written, const std::vector<std::string_view>& arguments, std::size_t& index) {
    std::string_view value = written.value.value_or("");
    if (!written.value && !written.flag->value.empty()) {
        if (++index == arguments.size()) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("{} needs a value: {}", written.spelling, written.flag->value));
        }
        value = arguments[index];
    }
    if (const Status status = written.flag->apply(value); !status) {
        return fail(status.error().prefixed(written.spelling));
    }
    return {};
}

}  // namespace

Result<std::vector<std::string_view>> parse_words(
    const std::vector<FlagGroup>& groups, const std::vector<std::string_view>& arguments) {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--") {
            words.insert(
                words.end(),
                arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                arguments.end());
            break;
        }
        if (argument.size() < 2 || argument.front() != '-') {
            words.push_back(argument);
            continue;
        }
        STOKER_TRY(
            const Written written,
            argument[1] == '-' ? read_long(groups, argument) : read_short(groups, argument));
        STOKER_TRY_VOID(apply_flag(written, arguments, i));
    }
    return words;
}

Status parse_flags(
    const std::vector<FlagGroup>& groups, const std::vector<std::string_view>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i].starts_with("--")) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not a flag; flags begin with --", arguments[i]));
        }
        STOKER_TRY(const Written written, read_long(groups, arguments[i]));
        STOKER_TRY_VOID(apply_flag(written, arguments, i));
    }
    return {};
}

std::string flag_help(const std::vector<FlagGroup>& groups) {
    constexpr std::size_t kColumn = 30;
    std::string text;
    for (const FlagGroup& group : groups) {
        text += fmt::format("\n{}\n", group.title);
        for (const Flag& flag : group.flags) {
            const std::string letter = flag.letter == 0 ? "" : fmt::format("-{}, ", flag.letter);
            const std::string left = fmt::format(
                "  {}--{}{}{}", letter, flag.name, flag.value.empty() ? "" : " ", flag.value);
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

std::function<Status(std::string_view value)> switch_into(bool& target) {
    return [&target](std::string_view value) -> Status {
        if (!value.empty() && value != "true" && value != "false") {
            return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a boolean", value));
        }
        target = value != "false";
        return {};
    };
}

Status each_pair(
    std::string_view text,
    std::string_view example,
    const std::function<Status(std::string_view name, std::string_view value)>& take) {
    for (const std::string_view part : split(text, ',')) {
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not name=value, such as {}", part, example));
        }
        STOKER_TRY_VOID(take(part.substr(0, equals), part.substr(equals + 1)));
    }
    return {};
}

}  // namespace stoker

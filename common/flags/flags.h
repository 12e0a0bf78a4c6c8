#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "common/base/result.h"

// Command-line flags as a table: parsing, help and the suggestion for a mistyped name use the same
// rows.
namespace stoker {

struct Flag {
    std::string name;     // without the dashes
    std::string value;    // placeholder in the help; empty: the flag takes no value
    std::string meaning;  // one line for the help
    std::function<Status(std::string_view value)> apply;
    char letter = 0;  // "-n" for short; 0: none
};

struct FlagGroup {
    std::string title;
    std::vector<Flag> flags;
};

// Accepts "--name value", "--name=value" and "--name". kInvalidArgument: an unknown flag (the
// message names the nearest one), a missing value, or an error of apply().
Status parse_flags(
    const std::vector<FlagGroup>& groups, const std::vector<std::string_view>& arguments);

// Like parse_flags(), with kubectl's rules: flags and positional arguments in any order, "-n
// value", "-n=value", "-nvalue"; all after "--" is positional. Returns the positional arguments.
Result<std::vector<std::string_view>> parse_words(
    const std::vector<FlagGroup>& groups, const std::vector<std::string_view>& arguments);

// One line per flag, with group titles.
std::string flag_help(const std::vector<FlagGroup>& groups);

// Parses a number from the whole text. kInvalidArgument: not a number; it names `what`.
Result<double> parse_number(std::string_view what, std::string_view text);
Result<std::uint64_t> parse_count(std::string_view what, std::string_view text);

// For Flag::apply: stores the value unchanged. `target` must outlive the flag.
template <class T>
auto text_into(T& target) {
    return [&target](std::string_view value) -> Status {
        target = value;
        return {};
    };
}

// For Flag::apply: stores the result of `read` for the flag's text. If the target is a vector, each
// use of the flag adds a value.
template <class T, class Read>
auto read_into(T& target, Read read) {
    return [&target, read](std::string_view value) -> Status {
        STOKER_TRY(auto got, read(value));
        if constexpr (requires { target.push_back(std::move(got)); }) {
            target.push_back(std::move(got));
        } else {
            target = std::move(got);
        }
        return {};
    };
}

// For Flag::apply: stores a number. kInvalidArgument: not a number, or it does not fit `target`.
template <class T>
auto number_into(T& target) {
    return read_into(target, [](std::string_view text) { return parse_number("value", text); });
}

template <class T>
auto count_into(T& target) {
    return read_into(target, [](std::string_view text) -> Result<T> {
        STOKER_TRY(const std::uint64_t count, parse_count("value", text));
        if (count > std::numeric_limits<T>::max()) {
            return fail(ErrorCode::kInvalidArgument, fmt::format("{} is too large", count));
        }
        return static_cast<T>(count);
    });
}

// For Flag::apply of a flag without a value; "--flag=true" and "--flag=false" are valid, too.
// kInvalidArgument: any other value.
std::function<Status(std::string_view value)> switch_into(bool& target);

// Parses "name=value,name=value" for Flag::apply: calls `take` with each pair in turn.
// kInvalidArgument: a part without "=" (the message quotes `example`), or an error of `take`.
Status each_pair(
    std::string_view text,
    std::string_view example,
    const std::function<Status(std::string_view name, std::string_view value)>& take);

}  // namespace stoker

#include "tests/support/fake_s3_fault.h"

#include <charconv>
#include <functional>
#include <map>

#include <fmt/core.h>

namespace stoker::test {

namespace {

template <class Number>
bool parse_number(std::string_view text, Number& number) {
    const char* end = text.data() + text.size();
    const auto [to, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && to == end;
}

bool parse_flag(std::string_view text, bool& flag) {
    flag = text == "true" || text == "1";
    return flag || text == "false" || text == "0";
}

bool set_field(FakeS3Fault& fault, std::string_view name, std::string_view value) {
    using Setter = std::function<bool(FakeS3Fault&, std::string_view)>;
    const auto text = [](auto member) {
        return Setter{[member](FakeS3Fault& f, std::string_view v) {
            f.*member = v;
            return true;
        }};
    };
    const auto number = [](auto member) {
        return Setter{
            [member](FakeS3Fault& f, std::string_view v) { return parse_number(v, f.*member); }};
    };
    const auto flag = [](auto member) {
        return Setter{
            [member](FakeS3Fault& f, std::string_view v) { return parse_flag(v, f.*member); }};
    };
    static const std::map<std::string_view, Setter> setters = {
        {"operation", text(&FakeS3Fault::operation)},
        {"key", text(&FakeS3Fault::key)},
        {"skip", number(&FakeS3Fault::skip)},
        {"times", number(&FakeS3Fault::times)},
        {"status", number(&FakeS3Fault::status)},
        {"code", text(&FakeS3Fault::code)},
        {"retry_after", text(&FakeS3Fault::retry_after)},
        {"reset", flag(&FakeS3Fault::reset)},
        {"etag", text(&FakeS3Fault::etag)},
        {"corrupt", flag(&FakeS3Fault::corrupt)},
        {"length_change", number(&FakeS3Fault::length_change)},
        {"bytes_per_second", number(&FakeS3Fault::bytes_per_second)},
        {"ignore_if_match", flag(&FakeS3Fault::ignore_if_match)},
        {"ignore_range", flag(&FakeS3Fault::ignore_range)},
        {"cut_after",
         [](FakeS3Fault& f, std::string_view v) { return parse_number(v, f.cut_after.emplace()); }},
        {"delay_ms",
         [](FakeS3Fault& f, std::string_view v) {
             std::int64_t ms = 0;
             const bool good = parse_number(v, ms);
             f.delay = std::chrono::milliseconds{ms};
             return good;
         }},
    };
    const auto found = setters.find(name);
    return found != setters.end() && found->second(fault, value);
}

}  // namespace

bool FakeS3Fault::matches(std::string_view request_operation, std::string_view request_key) const {
    if (!operation.empty() && operation != request_operation) {
        return false;
    }
    if (key.ends_with('*')) {
        return request_key.starts_with(std::string_view{key}.substr(0, key.size() - 1));
    }
    return key.empty() || key == request_key;
}

Result<FakeS3Fault> parse_fault(std::string_view text) {
    FakeS3Fault fault;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const auto equals = item.find('=');
        if (equals == std::string_view::npos ||
            !set_field(fault, item.substr(0, equals), item.substr(equals + 1))) {
            return fail(
                ErrorCode::kInvalidArgument, fmt::format("'{}' is not a field of a fault", item));
        }
    }
    return fault;
}

}  // namespace stoker::test

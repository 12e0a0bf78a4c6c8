#include "sidecar/advise/trace_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/core.h>

namespace stoker::advise {

namespace {

constexpr std::uint64_t kBytesMax = 1ULL << 50U;
constexpr double kSecondsMax = 1e12;

Error wrong(std::string_view what, std::string_view text) {
    constexpr std::size_t kShown = 40;
    std::string shown{text.substr(0, kShown)};
    // Removes control characters, which a terminal would obey.
    std::ranges::replace_if(
        shown, [](char c) { return c < ' ' || c > '~'; }, '?');
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is '{}'{}", what, shown, text.size() > kShown ? "..." : "")};
}

template <class T>
std::optional<T> whole(std::string_view text) {
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional<T>{number}
                                                                    : std::nullopt;
}

Result<std::uint64_t> byte_count(std::string_view what, std::string_view text) {
    const auto count = whole<std::uint64_t>(text);
    if (!count || *count > kBytesMax) {
        return fail(wrong(what, text));
    }
    return *count;
}

// Parses "06/Feb/2019:00:00:38 +0000".
std::optional<double> log_seconds(std::string_view text) {
    constexpr std::array<std::string_view, 12> kMonths{
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    if (text.size() != 26 || text[2] != '/' || text[6] != '/' || text[11] != ':' ||
        (text[21] != '+' && text[21] != '-')) {
        return std::nullopt;
    }
    const auto month = std::ranges::find(kMonths, text.substr(3, 3));
    std::array<int, 7> numbers{};
    constexpr std::array<std::pair<std::size_t, std::size_t>, 7> kPlaces{
        {{0, 2}, {7, 4}, {12, 2}, {15, 2}, {18, 2}, {22, 2}, {24, 2}}};
    for (std::size_t i = 0; i < kPlaces.size(); ++i) {
        const auto number = whole<int>(text.substr(kPlaces[i].first, kPlaces[i].second));
        if (!number || *number < 0) {
            return std::nullopt;
        }
        numbers[i] = *number;
    }
    namespace chrono = std::chrono;
    const chrono::year_month_day day{
        chrono::year{numbers[1]},
        chrono::month{static_cast<unsigned>(month - kMonths.begin()) + 1},
        chrono::day{static_cast<unsigned>(numbers[0])}};
    if (!day.ok()) {
        return std::nullopt;
    }
    const double days = static_cast<double>(chrono::sys_days{day}.time_since_epoch().count());
    const double zone = (text[21] == '-' ? -1 : 1) * (numbers[5] * 3600.0 + numbers[6] * 60.0);
    return days * 86400 + numbers[2] * 3600.0 + numbers[3] * 60.0 + numbers[4] - zone;
}

// The field, or "" if the line is shorter.
std::string_view field(const std::vector<std::string_view>& fields, std::size_t index) {
    return index < fields.size() ? fields[index] : std::string_view{};
}

// Like field(), for a field in which "-" means that the program does not know the value.
std::string_view optional_field(const std::vector<std::string_view>& fields, std::size_t index) {
    const std::string_view text = field(fields, index);
    return text == "-" ? std::string_view{} : text;
}

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

std::size_t skip_blanks(std::string_view line, std::size_t at) {
    while (at < line.size() && is_blank(line[at])) {
        ++at;
    }
    return at;
}

// The field that begins at `at`; moves `at` to the separator after it, or to the line's end.
std::string_view take_field(std::string_view line, bool comma, std::size_t& at) {
    const char open = at < line.size() ? line[at] : ' ';
    const char close = open == '"' ? '"' : open == '[' && !comma ? ']' : '\0';
    const std::size_t end = close == '\0' ? std::string_view::npos : line.find(close, at + 1);
    if (end != std::string_view::npos) {
        const std::string_view inside = line.substr(at + 1, end - at - 1);
        at = skip_blanks(line, end + 1);
        return inside;
    }
    const std::size_t stop =
        std::min(comma ? line.find(',', at) : line.find_first_of(" \t", at), line.size());
    std::string_view text = line.substr(std::min(at, line.size()), stop - std::min(at, stop));
    while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
    }
    at = stop;
    return text;
}

}  // namespace

const std::vector<std::string_view>& FieldSplitter::split(std::string_view line, bool comma) {
    fields_.clear();
    std::size_t at = skip_blanks(line, 0);
    // A comma at the end of the line is followed by one more field, an empty one.
    while (at < line.size() || (comma && !fields_.empty() && line.ends_with(','))) {
        fields_.push_back(take_field(line, comma, at));
        if (comma && at >= line.size()) {
            break;
        }
        at = skip_blanks(line, at + (comma ? 1 : 0));
    }
    return fields_;
}

Result<std::optional<Columns>> parse_header(const std::vector<std::string_view>& fields) {
    const bool is_data = fields.empty() || whole<double>(fields[0]).has_value();
    if (is_data || std::ranges::find(fields, "key") == fields.end()) {
        return std::optional<Columns>{};
    }
    const auto place = [&fields](std::string_view name) {
        const auto found = std::ranges::find(fields, name);
        return found == fields.end() ? Columns::kAbsent
                                     : static_cast<std::size_t>(found - fields.begin());
    };
    const Columns columns{
        place("time"),
        place("key"),
        place("bytes"),
        place("offset"),
        place("epoch"),
        place("rank")};
    if (columns.time == Columns::kAbsent || columns.bytes == Columns::kAbsent) {
        return fail(
            ErrorCode::kInvalidArgument,
            "the header must name the columns time, key and bytes; also known: offset, epoch, "
            "rank");
    }
    return std::optional{columns};
}

Result<LineRead> parse_plain(const std::vector<std::string_view>& fields, const Columns& columns) {
    LineRead read;
    const std::string_view time = field(fields, columns.time);
    const auto seconds = whole<double>(time);
    if (!seconds || !(std::abs(*seconds) <= kSecondsMax)) {
        return fail(wrong("time (seconds)", time));
    }
    read.seconds = *seconds;
    read.key = field(fields, columns.key);
    if (read.key.empty()) {
        return fail(wrong("key", read.key));
    }
    STOKER_TRY(read.bytes, byte_count("bytes", field(fields, columns.bytes)));
    if (const std::string_view offset = optional_field(fields, columns.offset); !offset.empty()) {
        STOKER_TRY(read.offset, byte_count("offset", offset));
    }
    if (const std::string_view epoch = optional_field(fields, columns.epoch); !epoch.empty()) {
        read.epoch = whole<std::uint32_t>(epoch);
        if (!read.epoch || *read.epoch == UINT32_MAX) {
            return fail(wrong("epoch", epoch));
        }
    }
    read.reader = optional_field(fields, columns.rank);
    return read;
}

bool is_access_log(const std::vector<std::string_view>& fields) {
    return fields.size() >= 8 && log_seconds(fields[2]).has_value();
}

Result<std::optional<LineRead>> parse_access_log(const std::vector<std::string_view>& fields) {
    // Owner, bucket, time, address, requester, request, operation, key, URI, status, error, bytes,
    // object's bytes, ...: docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
    if (fields.size() < 13) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("an access log's line has 13 fields or more, this one {}", fields.size()));
    }
    const auto seconds = log_seconds(fields[2]);
    if (!seconds) {
        return fail(wrong("time", fields[2]));
    }
    const std::string_view status = fields[9];
    if (fields[6] != "REST.GET.OBJECT" || (status != "200" && status != "206")) {
        return std::optional<LineRead>{};
    }
    LineRead read;
    read.seconds = *seconds;
    read.bucket = fields[1];
    read.reader = fields[3];
    read.key = fields[7];
    STOKER_TRY(read.bytes, byte_count("bytes sent", fields[11] == "-" ? "0" : fields[11]));
    // Fewer bytes with status 200 mean a download of the whole object that ended early.
    if (status == "206" && fields[12] != "-") {
        STOKER_TRY(read.object_bytes, byte_count("object size", fields[12]));
    }
    return std::optional{read};
}

}  // namespace stoker::advise

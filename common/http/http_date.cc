#include "common/http/http_date.h"

#include <ctime>

#include <fmt/chrono.h>

namespace stoker::http {

std::optional<WallTime> parse_http_date(std::string_view text) {
    const std::string whole{text};
    std::tm date{};
    // Names of the C locale, in which all our programs run.
    const char* rest = ::strptime(whole.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (rest != whole.c_str() + whole.size()) {
        return std::nullopt;
    }
    using std::chrono::seconds;
    const seconds since{::timegm(&date)};
    const bool fits = since >= std::chrono::ceil<seconds>(WallTime::min().time_since_epoch()) &&
                      since <= std::chrono::floor<seconds>(WallTime::max().time_since_epoch());
    return fits ? std::optional{WallTime{since}} : std::nullopt;
}

std::string format_http_date(WallTime time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
    return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time_t{seconds}));
}

}  // namespace stoker::http

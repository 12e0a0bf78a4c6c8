#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

// One JSON object per line on stderr: {"ts":"…","level":"info","msg":"…","key":"value",…}. Log
// decisions, not steps; values go into fields, not into the sentence. Thread-safe; each line is one
// write().
namespace stoker::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };

// A key and its value. Numbers and booleans are not quoted in the JSON.
struct Field {
    std::string_view key;
    std::string value;
    bool quoted = true;

    Field(std::string_view name, std::string_view text)
        : key(name),
          value(text) {}

    Field(std::string_view name, const char* text)
        : key(name),
          value(text) {}

    Field(std::string_view name, const std::string& text)
        : key(name),
          value(text) {}

    template <class Number>

    requires std::is_arithmetic_v<Number> Field(std::string_view name, Number number)
        : key(name),
          value(fmt::format("{}", number)),
          quoted(false) {}
};

// Lower levels are not written. Call it once at start; the default is kInfo.
void set_level(Level level);

// Parses a flag: "debug", "info", "warning", "error"; anything else returns false.
bool parse_level(std::string_view text, Level& level);

void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void debug(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kDebug, message, fields);
}

inline void info(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kInfo, message, fields);
}

inline void warning(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kWarning, message, fields);
}

inline void error(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kError, message, fields);
}

// The line that write() would print, without its time stamp; for tests.
std::string format_line(
    std::string_view timestamp,
    Level level,
    std::string_view message,
    std::initializer_list<Field> fields);

}  // namespace stoker::log

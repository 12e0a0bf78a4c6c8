#include "common/log/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "common/log/sink.h"

namespace stoker::log {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};

std::atomic<Level>& threshold() {
    static std::atomic<Level> level{Level::kInfo};
    return level;
}

Sink& sink() {
    static Sink& sink = *new Sink;  // never destroyed: other threads may log until the end
    return sink;
}

// Escapes text for JSON: keys and messages of origins may contain any bytes, and JSON is UTF-8.
void append_escaped(std::string& out, std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text.front();
        if (length == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

void append_text(std::string& out, std::string_view key, std::string_view value) {
    out += fmt::format("\"{}\":\"", key);
    append_escaped(out, value);
    out += '"';
}

std::string now_text() {
    const auto now = std::chrono::floor<std::chrono::milliseconds>(SystemClock{}.wall_now());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    return fmt::format(
        "{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
        fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
        (now - seconds).count());
}

}  // namespace

void set_sink(Sink to) {
    sink() = std::move(to);
}

void set_level(Level level) {
    threshold() = level;
}

bool parse_level(std::string_view text, Level& level) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames.at(i) == text) {
            level = static_cast<Level>(i);
            return true;
        }
    }
    return false;
}

std::string format_line(
    std::string_view timestamp,
    Level level,
    std::string_view message,
    std::initializer_list<Field> fields) {
    std::string line = "{";
    append_text(line, "ts", timestamp);
    line += ',';
    append_text(line, "level", kNames.at(static_cast<std::size_t>(level)));
    line += ',';
    append_text(line, "msg", message);
    for (const Field& field : fields) {
        line += ',';
        if (field.quoted) {
            append_text(line, field.key, field.value);
        } else {
            line += fmt::format("\"{}\":{}", field.key, field.value);
        }
    }
    line += "}\n";
    return line;
}

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
    if (level < threshold().load()) {
        return;
    }
    if (sink()) {
        sink()(level, message, fields);
        return;
    }
    const std::string line = format_line(now_text(), level, message, fields);
    // Ignore the result: there is no other place to report it.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace stoker::log

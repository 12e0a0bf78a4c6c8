#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::control {

// Cuts a stream into lines at '\n', however the bytes arrive: a watch sends one JSON object a line,
// and its pieces have nothing to do with lines. What stands after the last '\n' waits for the rest;
// if none comes it was cut and is worth nothing. Memory is bounded by the longest line allowed plus
// one piece. Not thread-safe.
class LineSplitter {
public:
    static constexpr std::size_t kLineBytesMax = std::size_t{16} * 1024 * 1024;

    explicit LineSplitter(std::size_t line_bytes_max = kLineBytesMax)
        : line_bytes_max_(line_bytes_max) {}

    // Adds a piece. Take the lines out with next() before the next one.
    void push(std::string_view piece) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
        buffer_ += piece;
    }

    // The next whole line without its end, empty lines left out; nullopt when more is needed or
    // after overflow. The view is valid until the next call of push().
    std::optional<std::string_view> next() {
        while (!overflowed_) {
            const std::size_t end = buffer_.find('\n', scanned_);
            if (end == std::string::npos) {
                scanned_ = buffer_.size();
                overflowed_ = scanned_ - begin_ > line_bytes_max_;
                return std::nullopt;
            }
            const std::string_view line(buffer_.data() + begin_, end - begin_);
            begin_ = scanned_ = end + 1;
            overflowed_ = line.size() > line_bytes_max_;
            if (!line.empty() && !overflowed_) {
                return line;
            }
        }
        return std::nullopt;
    }

    // A line was longer than allowed. The stream cannot be read on.
    [[nodiscard]] bool overflowed() const { return overflowed_; }

    // Bytes of a line whose end has not come.
    [[nodiscard]] std::size_t pending() const { return buffer_.size() - begin_; }

private:
    std::size_t line_bytes_max_;
    std::string buffer_;
    std::size_t begin_ = 0;    // of the current line
    std::size_t scanned_ = 0;  // no '\n' in [begin_, scanned_)
    bool overflowed_ = false;
};

}  // namespace stoker::control

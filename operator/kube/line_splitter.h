#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::control {

// Splits a stream at '
// ', whatever the sizes of the pieces: a watch sends one JSON object per line. Text after the last
// '
// ' waits for more; if none comes, the object was cut and is useless. Memory is bounded by the
// longest allowed line plus one piece. Not thread-safe.
class LineSplitter {
public:
    static constexpr std::size_t kLineBytesMax = std::size_t{16} * 1024 * 1024;

    explicit LineSplitter(std::size_t line_bytes_max = kLineBytesMax)
        : line_bytes_max_(line_bytes_max) {}

    // Adds a piece. Read all lines with next() before the next push().
    void push(std::string_view piece) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
        buffer_ += piece;
    }

    // The next complete line without its end, skipping empty lines; nullopt if more input is needed
    // or after overflow. The view is valid until the next call of push().
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

    // True after a line beyond the limit; the stream cannot be read further.
    [[nodiscard]] bool overflowed() const { return overflowed_; }

    // Bytes of an incomplete line.
    [[nodiscard]] std::size_t pending() const { return buffer_.size() - begin_; }

private:
    std::size_t line_bytes_max_;
    std::string buffer_;
    std::size_t begin_ = 0;    // of the current line
    std::size_t scanned_ = 0;  // no '\n' in [begin_, scanned_)
    bool overflowed_ = false;
};

}  // namespace stoker::control

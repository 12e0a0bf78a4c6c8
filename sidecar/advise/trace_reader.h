#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/result.h"
#include "sidecar/advise/trace.h"
#include "sidecar/advise/trace_line.h"

namespace stoker::advise {

struct TraceLimits {
    std::size_t line_bytes_max = std::size_t{64} << 10U;
    std::size_t reads_max = 10'000'000;  // the replay needs about 100 bytes of memory per read
    std::uint32_t readers_max = 65'536;
};

// Parses a trace piece by piece: plain lines `time key bytes [epoch [rank]]`, the same with a
// header, or an S3 server access log; the first line decides. Empty lines and lines that begin with
// "#" are skipped. Keeps hashes of keys, not the keys: a trace takes 24 bytes per read and about 40
// per sample. The text may be hostile. Not thread-safe.
class TraceReader {
public:
    explicit TraceReader(TraceLimits limits = {})
        : limits_(limits) {}

    // Parses the next piece of the text, cut anywhere. kInvalidArgument: a header lacks needed
    // columns; kResourceExhausted: a limit is exceeded. After an error the reader is unusable.
    Status feed(std::string_view piece);

    // Ends the text. kInvalidArgument: there is no read, most lines are not reads (the message
    // names the first of these), or the sizes are absurd.
    Result<Trace> finish() &&;

private:
    enum class Format : std::uint8_t { kUnknown, kPlain, kAccessLog };

    Status take_line(std::string_view line);
    Result<std::optional<LineRead>> parse(std::string_view line);
    Status find_format(std::string_view line, bool& is_header);
    Status take_read(const LineRead& read);
    void refuse(std::string reason);
    std::uint64_t part_offset(const LineRead& read, std::uint64_t object);

    TraceLimits limits_;
    Trace trace_;
    Format format_ = Format::kUnknown;
    bool comma_ = false;
    Columns columns_;
    FieldSplitter splitter_;
    std::string rest_;       // beginning of a line whose end has not arrived yet
    bool too_long_ = false;  // the line in `rest_` is longer than a line may be
    std::uint64_t line_number_ = 0;
    std::uint64_t reads_without_epoch_ = 0;
    std::unordered_map<std::uint64_t, SampleIndex> samples_;      // by hash of bucket, key, offset
    std::unordered_map<std::uint64_t, std::uint32_t> readers_;    // by hash of the name
    std::unordered_map<std::uint64_t, std::uint64_t> next_part_;  // by hash of reader and object
};

}  // namespace stoker::advise

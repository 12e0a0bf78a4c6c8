#include "sidecar/advise/trace_reader.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "common/base/bytes.h"
#include "common/base/prng.h"

namespace stoker::advise {

namespace {

constexpr Bytes kReadBytesMax{1ULL << 60U};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t more) {
    return Prng{Prng{hash}() + more}();
}

std::uint64_t hash_of(std::string_view text) {
    return std::hash<std::string_view>{}(text);
}

}  // namespace

Status TraceReader::feed(std::string_view piece) {
    while (!piece.empty()) {
        const std::size_t end = piece.find('\n');
        const std::string_view part = piece.substr(0, end);
        too_long_ = too_long_ || rest_.size() + part.size() > limits_.line_bytes_max;
        if (end == std::string_view::npos) {
            rest_.append(too_long_ ? std::string_view{} : part);
            return {};
        }
        if (rest_.empty()) {
            STOKER_TRY_VOID(take_line(part));
        } else {
            rest_.append(too_long_ ? std::string_view{} : part);
            STOKER_TRY_VOID(take_line(rest_));
        }
        rest_.clear();
        too_long_ = false;
        piece.remove_prefix(end + 1);
    }
    return {};
}

Result<Trace> TraceReader::finish() && {
    if (!rest_.empty() || too_long_) {
        STOKER_TRY_VOID(take_line(rest_));
    }
    const RefusedLines& refused = trace_.refused;
    if (refused.count > trace_.reads.size() + trace_.other_requests) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "this is not a trace: {} lines are no reads, the first is line {}: {}",
                refused.count,
                refused.first_line,
                refused.first_reason));
    }
    if (trace_.reads.empty()) {
        return fail(ErrorCode::kInvalidArgument, "the trace has no reads");
    }
    Bytes read_bytes;
    for (const Read& read : trace_.reads) {
        read_bytes += Bytes{trace_.sizes[read.sample]};
    }
    if (read_bytes > kReadBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the reads have more than {} together", to_string(kReadBytesMax)));
    }
    if (!std::ranges::is_sorted(trace_.reads, {}, &Read::seconds)) {
        std::ranges::stable_sort(trace_.reads, {}, &Read::seconds);
    }
    trace_.readers = static_cast<std::uint32_t>(readers_.size());
    trace_.has_epochs = reads_without_epoch_ == 0;
    trace_.is_access_log = format_ == Format::kAccessLog;
    return std::move(trace_);
}

Status TraceReader::take_line(std::string_view line) {
    ++line_number_;
    if (too_long_) {
        refuse(fmt::format("longer than {} bytes", limits_.line_bytes_max));
        return {};
    }
    if (line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') {
        return {};
    }
    if (format_ == Format::kUnknown) {
        bool is_header = false;
        STOKER_TRY_VOID(find_format(line, is_header));
        if (is_header) {
            return {};
        }
    }
    auto read = parse(line);
    if (!read) {
        refuse(std::move(read).error().message);
        return {};
    }
    trace_.other_requests += read->has_value() ? 0 : 1;
    return read->has_value() ? take_read(**read) : Status{};
}

// Parses a line. nullopt: in an access log, another request than a GET of an object.
Result<std::optional<LineRead>> TraceReader::parse(std::string_view line) {
    const auto& fields = splitter_.split(line, comma_);
    if (format_ == Format::kAccessLog) {
        return parse_access_log(fields);
    }
    STOKER_TRY(const LineRead read, parse_plain(fields, columns_));
    return std::optional{read};
}

Status TraceReader::find_format(std::string_view line, bool& is_header) {
    if (is_access_log(splitter_.split(line, false))) {
        format_ = Format::kAccessLog;
        return {};
    }
    format_ = Format::kPlain;
    // A comma alone does not prove the format: a key may contain one, too.
    comma_ = line.find(',') != std::string_view::npos &&
             !parse_plain(splitter_.split(line, false), Columns{}).has_value();
    STOKER_TRY(const auto columns, parse_header(splitter_.split(line, comma_)));
    is_header = columns.has_value();
    columns_ = columns.value_or(Columns{});
    return {};
}

Status TraceReader::take_read(const LineRead& read) {
    if (trace_.reads.size() == limits_.reads_max) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("more than {} reads: pass the first epochs only", limits_.reads_max));
    }
    const auto reader =
        readers_.try_emplace(hash_of(read.reader), static_cast<std::uint32_t>(readers_.size()));
    if (readers_.size() > limits_.readers_max) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("more than {} ranks or hosts read", limits_.readers_max));
    }
    const std::uint64_t object = mixed(hash_of(read.key), hash_of(read.bucket));
    const std::uint64_t offset = part_offset(read, object);
    trace_.partial_reads += offset > 0 ? 1 : 0;
    const auto sample =
        samples_.try_emplace(mixed(object, offset), static_cast<SampleIndex>(trace_.sizes.size()));
    if (sample.second) {
        trace_.sizes.push_back(0);
    }
    std::uint64_t& size = trace_.sizes[sample.first->second];
    size = std::max(size, read.bytes);
    reads_without_epoch_ += read.epoch ? 0 : 1;
    trace_.reads.push_back(
        {read.seconds, sample.first->second, read.epoch.value_or(kNoEpoch), reader.first->second});
    return {};
}

void TraceReader::refuse(std::string reason) {
    if (trace_.refused.count++ == 0) {
        trace_.refused.first_line = line_number_;
        trace_.refused.first_reason = std::move(reason);
    }
}

// Offset of the read in its object. An access log has no ranges, so a host's reads of parts of an
// object count as reads in order, from the first byte to the last.
std::uint64_t TraceReader::part_offset(const LineRead& read, std::uint64_t object) {
    if (read.offset) {
        return *read.offset;
    }
    const std::uint64_t parts = mixed(object, hash_of(read.reader));
    if (!read.object_bytes || read.bytes >= *read.object_bytes) {
        next_part_.erase(parts);
        return 0;
    }
    std::uint64_t& next = next_part_[parts];
    const std::uint64_t offset = next;
    next = next + read.bytes >= *read.object_bytes ? 0 : next + read.bytes;
    return offset;
}

}  // namespace stoker::advise

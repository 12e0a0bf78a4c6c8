#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "cli/advise/advise_report.h"
#include "sidecar/advise/trace_reader.h"

namespace stoker::cli {

namespace {

Result<advise::Trace> read_trace(std::FILE* file, const std::string& path) {
    constexpr std::size_t kPiece = std::size_t{256} << 10U;
    const auto piece = std::make_unique<std::array<char, kPiece>>();
    advise::TraceReader reader;
    while (const std::size_t count = std::fread(piece->data(), 1, kPiece, file)) {
        STOKER_TRY_VOID(reader.feed({piece->data(), count}));
    }
    if (std::ferror(file) != 0) {
        return fail(ErrorCode::kUnavailable, fmt::format("{} cannot be read to its end", path));
    }
    return std::move(reader).finish();
}

}  // namespace

Result<advise::Advice> advise_from_trace(const AdviseOptions& options) {
    const std::string& path = options.trace_path;
    using Closer = int (*)(std::FILE*);
    std::unique_ptr<std::FILE, Closer> opened{
        path == "-" ? nullptr : std::fopen(path.c_str(), "rb"), &std::fclose};
    if (path != "-" && opened == nullptr) {
        return fail(ErrorCode::kNotFound, fmt::format("{} cannot be opened", path));
    }
    const auto trace = read_trace(path == "-" ? stdin : opened.get(), path);
    if (!trace) {
        return fail(trace.error().prefixed(path));
    }
    constexpr std::size_t kReadsPerMinute = 1'500'000;  // for all cache sizes
    if (const std::size_t minutes = trace->reads.size() / kReadsPerMinute; minutes > 0) {
        fmt::print(
            stderr,
            "{} reads: this takes {} minutes or more. Two epochs are enough.\n",
            trace->reads.size(),
            minutes);
    }
    return advise::advise(*trace, options.question);
}

}  // namespace stoker::cli

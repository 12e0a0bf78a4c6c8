#include "client/src/core/gather.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>

#include "client/src/core/mapped_file.h"

namespace stoker::client {

namespace {

constexpr std::size_t kThreadsMax = 8;
constexpr std::size_t kBytesPerThread = std::size_t{4} << 20U;   // below: not worth a thread
constexpr std::size_t kTurnPieces = 16;                          // taken by a thread at a time
constexpr std::size_t kReadAheadBytes = std::size_t{32} << 10U;  // below: costs more than it saves

std::size_t threads_for(std::span<const CopyPiece> pieces) {
    std::size_t bytes = 0;
    for (const CopyPiece& piece : pieces) {
        bytes += piece.from.size();
    }
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    return std::clamp(bytes / kBytesPerThread, std::size_t{1}, std::min(cores, kThreadsMax));
}

void read_ahead(std::span<const CopyPiece> pieces) {
    for (const CopyPiece& piece : pieces) {
        if (piece.from.size() >= kReadAheadBytes) {
            MappedFile::read_ahead(piece.from);
        }
    }
}

}  // namespace

std::vector<std::size_t> copy_pieces(std::span<const CopyPiece> pieces) {
    std::vector<std::uint8_t> lost(pieces.size());
    std::atomic<std::size_t> next{0};
    const std::size_t threads = threads_for(pieces);
    const std::size_t turn = std::clamp(pieces.size() / threads / 4, std::size_t{1}, kTurnPieces);
    const auto work = [&] {
        for (std::size_t begin = next.fetch_add(turn); begin < pieces.size();
             begin = next.fetch_add(turn)) {
            const std::size_t end = std::min(begin + turn, pieces.size());
            read_ahead(pieces.subspan(begin, end - begin));
            for (std::size_t at = begin; at < end; ++at) {
                const CopyPiece& piece = pieces[at];
                lost[at] = copy_guarded(piece.from, piece.to, piece.from.size()) ? 0 : 1;
            }
        }
    };
    {
        std::vector<std::jthread> helpers;
        try {
            while (helpers.size() + 1 < threads) {
                helpers.emplace_back(work);
            }
        } catch (const std::system_error&) {  // no more threads: the others do it
        }
        work();
    }
    std::vector<std::size_t> indexes;
    for (std::size_t at = 0; at < lost.size(); ++at) {
        if (lost[at] != 0) {
            indexes.push_back(at);
        }
    }
    return indexes;
}

}  // namespace stoker::client

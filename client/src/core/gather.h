#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stoker::client {

// One payload and where its copy goes. Both spans have the same size in bytes and belong to the
// caller.
struct CopyPiece {
    std::span<const std::byte> from;
    std::span<std::byte> to;
};

// Copies all pieces, on up to eight threads if there are many bytes. Returns the ascending indexes
// of pieces that could not be read: their file was truncated, or the disk failed (copy_guarded()).
// The destination of such a piece holds unspecified bytes. Any thread may call; the pieces'
// destinations must not overlap.
[[nodiscard]] std::vector<std::size_t> copy_pieces(std::span<const CopyPiece> pieces);

}  // namespace stoker::client

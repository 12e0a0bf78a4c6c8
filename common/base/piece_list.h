#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace stoker {

// A list that grows and shrinks at its end, stored in pieces of `kPiece` values. It allocates at
// most two pieces more than its values need; a vector holds two copies while it grows and never
// gives memory back. Values do not move. An access costs one more look-up, in a small table, than
// in a vector. Trivially copyable values only. Not thread-safe.
template <class Value, std::size_t kPiece>
class PieceList {
public:
    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    const Value& operator[](std::size_t i) const { return pieces_[i / kPiece][i % kPiece]; }

    Value& operator[](std::size_t i) { return pieces_[i / kPiece][i % kPiece]; }

    // The last value. The list must not be empty; the same holds for pop_back().
    [[nodiscard]] const Value& back() const { return (*this)[size_ - 1]; }

    void push_back(const Value& value) {
        if (size_ == pieces_.size() * kPiece) {
            pieces_.push_back(std::make_unique<Value[]>(kPiece));
        }
        (*this)[size_++] = value;
    }

    // Removes the last value. Keeps the piece behind it, so that a list that alternately shrinks
    // and grows does not reallocate.
    void pop_back() {
        --size_;
        if (size_ + 2 * kPiece <= pieces_.size() * kPiece) {
            pieces_.pop_back();
        }
    }

    // Frees all memory.
    void clear() { *this = {}; }

    [[nodiscard]] std::size_t memory_bytes() const {
        return pieces_.size() * kPiece * sizeof(Value) + pieces_.capacity() * sizeof(pieces_[0]);
    }

private:
    std::vector<std::unique_ptr<Value[]>> pieces_;
    std::size_t size_ = 0;
};

}  // namespace stoker
